//go:build linux

package snapshot

import (
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// A thread that runs on a CPU that did not come to the stop is not where its saved
// registers say: it has the stack of its sample, or none.
func TestUserProofStaleRegisters(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	requireBPF(t)
	requireTwoCPUs(t)
	for _, engine := range userEngines() {
		t.Run(engine, func(t *testing.T) {
			s := session(t, Options{Engine: engine, KeepStacks: true})
			var pid int
			var res *Result
			var snap *kcdata.Snapshot
			for range 5 { // real-time throttling takes a hog off its CPU for 50 ms of each second
				pid, res, snap = hogged(t, s, func() *testtask.Fixture { return testtask.FIFOHog(t, s.plan.Stop[1], 20*time.Second) })
				if len(res.CPUs.Missing) > 0 && threadsByID(snap)[uint64(pid)] != nil {
					break
				}
			}
			if len(res.CPUs.Missing) == 0 {
				t.Fatalf("every CPU came: %+v", res.CPUs)
			}
			th := threadsByID(snap)[uint64(pid)]
			if th == nil || th.UserWalk == nil {
				t.Fatalf("thread %d: %+v", pid, th)
			}
			if th.UserHow != nil || th.UserWalk.Flags&kcdata.UserUnwound != 0 || len(th.UserBytes)+len(th.UserChain) > 0 || len(th.User) > 0 && th.Sample == nil {
				t.Errorf("a stack from stale registers: %#x, sample %v (%s)", th.User, th.Sample, note(th))
			}
		})
	}
}
