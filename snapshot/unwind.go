package snapshot

import (
	"slices"
	"time"

	"stackshot/internal/stacks"
	"stackshot/kcdata"
)

// unwindBudget is what reading the unwind tables of all files may cost in one
// capture; what did not fit is unwound by the frame-pointer chain alone.
const unwindBudget = 4 * time.Second

// unwinder makes user stacks of what the stop took of the user side, for one
// capture. Used by one goroutine.
type unwinder struct {
	stacks.Unwinder
	keep bool  // chain and bytes stay in the file
	away []int // CPUs that were not stopped
}

// newUnwinder is nil where nothing of user stacks is taken.
func (s *Session) newUnwinder(away []int) *unwinder {
	o := &s.options
	if o.Redact || o.UserStacks == UserStacksOff || s.hooks.asTaken {
		return nil
	}
	return &unwinder{
		Unwinder: stacks.Unwinder{
			Images: s.images, Arch: s.host.arch, Left: unwindBudget,
			ChainOnly: o.UserStacks == UserStacksFP, Frames: o.UserFrames,
		},
		keep: o.KeepStacks, away: away,
	}
}

// task turns what was taken of each of the task's threads into its user stack. The
// task's mappings are known by then. A thread that runs on a CPU that was not stopped
// is not where its saved registers say, and its stack changes: it has the stack of
// its sample, or none.
func (u *unwinder) task(t *taskBytes) error {
	if u == nil {
		return nil
	}
	p := u.Process(int(t.linux.Tgid), t.maps)
	for i := range t.threads {
		th := &t.threads[i]
		stale := slices.Contains(u.away, th.onCPU)
		if !u.keep || stale {
			for _, raw := range th.user.Raw {
				t.edits = append(t.edits, edit{off: raw.Off, cut: raw.Len})
			}
		}
		if stale || th.stack || !th.user.Usable() {
			continue // its own CPU took it, or there is none
		}
		stack, err := stacks.Put(u.Thread(p, &th.user))
		if err != nil {
			return err
		}
		kcdata.Marshal(t.body[th.user.WalkAt:th.user.WalkAt], th.user.Walk)
		if th.snap > 0 {
			th.user.Mark(t.body[th.snap:])
		}
		t.insert(th.end, stack)
	}
	return nil
}
