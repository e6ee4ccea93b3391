package stacks

import "stackshot/kcdata"

// SetFlags changes the flags of a thread. SSTruncated follows from the other two.
func SetFlags(t *kcdata.ThreadSnapshot, set, unset uint64) {
	t.SSFlags = (t.SSFlags | set) &^ (unset | kcdata.SSTruncated)
	if t.SSFlags&(kcdata.SSTruncatedKernel|kcdata.SSTruncatedUser) != 0 {
		t.SSFlags |= kcdata.SSTruncated
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
			SetFlags(t, 0, kcdata.SSTruncatedUser)
		} else {
			SetFlags(t, kcdata.SSTruncatedUser, 0)
		}
	})
}
