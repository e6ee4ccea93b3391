package stacks

import "stackshot/kcdata"

// Flags of ths_ss_flags that say that a stack goes on where it ends in the file:
// either of the two, the kernel's, the user's (kcdata.h of XNU).
const (
	Truncated       = 0x80
	TruncatedKernel = 0x4000
	TruncatedUser   = 0x8000
)

// SetFlags changes the flags of a thread. Truncated follows from the other two.
func SetFlags(t *kcdata.ThreadSnapshot, set, unset uint64) {
	t.SSFlags = (t.SSFlags | set) &^ (unset | Truncated)
	if t.SSFlags&(TruncatedKernel|TruncatedUser) != 0 {
		t.SSFlags |= Truncated
	}
}

// Mark writes Walk to its record, and says in Apple's flags what it says of the stack
// that Thread made: whether that reached an outermost frame. thread is the position
// of the THREAD_SNAPSHOT; zero: there is none, or a short one.
func (f *Found) Mark(thread kcdata.Position) error {
	err := kcdata.Patch(f.WalkAt, func(w *kcdata.LinuxUserWalk) { *w = *f.Walk })
	if err != nil || thread.IsZero() {
		return err
	}
	return kcdata.Patch(thread, func(t *kcdata.ThreadSnapshot) {
		if f.Walk.Flags&kcdata.UserComplete != 0 {
			SetFlags(t, 0, TruncatedUser)
		} else {
			SetFlags(t, TruncatedUser, 0)
		}
	})
}
