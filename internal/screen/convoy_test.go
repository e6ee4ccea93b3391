package screen

import (
	"strings"
	"testing"

	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// A stopped holder whose child has the lock too, by a descriptor that it inherited, is told once,
// and that it is not the only one. A convoy of which others wait for somebody else stays.
func TestHolderOfAConvoyIsToldOnce(t *testing.T) {
	for _, stranger := range []bool{false, true} {
		c := stoppedHolder()
		k := c.v.Culprits[0]
		child, th := c.process(301, "sleep", kcdata.StateInterruptible, 80, "schedule", "hrtimer_nanosleep")
		o := has(child, th, waits.Holds)
		o.Whole = true
		for _, w := range k.Victims {
			w.Owners = append(w.Owners, o)
		}
		convoy := &waitgraph.Convoy{Resource: k.Victims[0].Resource, Waiters: k.Victims, Owners: k.Victims[0].Owners}
		if stranger {
			job, other := c.process(4000, "job", kcdata.StateInterruptible, 5, "schedule", "locks_lock_inode_wait")
			convoy.Waiters = append(convoy.Waiters[:50:50], c.waits(job, other, waits.FileLock, 5, o))
		}
		c.v.Convoys = append(c.v.Convoys, convoy)
		text := textOf(t, c.done(), Options{Verdict: c.v, Width: 200, Height: 50, File: file})
		if !strings.Contains(text, "backup.sh [300] STOPPED, 50 behind: holds a file lock (flock) on inode 4711 of /var, as does 1 more") {
			t.Errorf("stranger %v: not told:\n%s", stranger, text)
		}
		if n := strings.Count(text, "backup.sh [300]"); (n > 1) != stranger {
			t.Errorf("stranger %v: named %d times:\n%s", stranger, n, text)
		}
	}
}
