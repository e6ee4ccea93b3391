package stop

import (
	"slices"
	"stackshot/workqueue"
	"testing"
)

// Who leads after a P core was late: another P core, and an E core before one
// that may be late again or does not work.
func TestWhoLeadsInstead(t *testing.T) {
	order := []*Worker{
		{Works: true, Kind: workqueue.P}, {Works: true, Kind: workqueue.E}, {Works: true, Kind: workqueue.P, late: true}, {Kind: workqueue.P},
	}
	if !slices.IsSortedFunc(order, func(a, b *Worker) int { return a.reluctance() - b.reluctance() }) || order[0].reluctance() == order[1].reluctance() {
		t.Errorf("want P, E, late, idle: %+v", order)
	}
	if p, smp := order[0], (&Worker{Works: true}); p.reluctance() != smp.reluctance() {
		t.Errorf("all alike: %d, P: %d", smp.reluctance(), p.reluctance())
	}
}
