package verdict

import (
	"testing"

	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Lines: one for each holder, however many locks it has, and for each lock of which nobody is known to have it; those of pools last,
// the longest first, within it who has waited longest; only of the threads that were asked for.
func TestLines(t *testing.T) {
	s := scene("cron", "a", "b", "c", "d", "e", "f", "g", "leader", "h")
	cron, leader := has(s, 0, waits.Holds), has(s, 8, waits.Holds)
	reader := has(s, 9, waits.OtherEnd)
	of := func(i int, k waits.Kind, id, age uint64, owners ...waits.Owner) *waits.Wait {
		w := waitsFor(s, i, k, id, owners...)
		w.Age.Known, w.Age.Ns = true, age
		return w
	}
	pool := []*waits.Wait{of(6, waits.UserMutex, 4, 9, leader)}
	x := For(&kcdata.Snapshot{}, &waitgraph.Verdict{
		Waits: &waits.Waits{OneInstant: true},
		Pools: []*waitgraph.Convoy{{Resource: pool[0].Resource, Waiters: pool, Owners: []waits.Owner{leader}}},
		Starved: []*waits.Wait{of(1, waits.UserMutex, 1, 5, cron), of(2, waits.UserMutex, 2, 7, cron), of(3, waits.UserMutex, 1, 6, cron),
			of(4, waits.UserMutex, 3, 1), of(5, waits.UserMutex, 3, 2), of(7, waits.Pipe, 0, 8, reader), of(0, waits.CPU, 0, 99)},
	})
	short := func(w *waits.Wait) string { return Kind(w.Kind) }
	lines := x.Lines(nil)
	if got, want := Behind(lines, 9, Owner, short), `3 behind app [100] "cron" (a mutex), 2 of process app [100] at a mutex, 1 behind app [100] tid 109 "h" (the other end of a pipe), 1 behind app [100] tid 108 "leader" (a mutex)`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got, want := Behind(lines, 1, Owner, short), `3 behind app [100] "cron" (a mutex), 4 more`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if first := lines[0].Waits; first[0].Thread.Name != "b" || first[1].Thread.Name != "c" || first[2].Thread.Name != "a" || lines[0].Turn || !lines[3].Turn {
		t.Errorf("%+v", lines)
	}
	if got := Behind(x.Lines(map[*kcdata.Thread]bool{s.Threads[2]: true, s.Threads[6]: true}), 9, Owner, short); got != `1 behind app [100] "cron" (a mutex), 1 behind app [100] tid 108 "leader" (a mutex)` {
		t.Error(got)
	}
	if got := Behind(nil, 9, Owner, short); got != "" {
		t.Error(got)
	}
}
