package stacks

import (
	"stackshot/internal/unwind"
	"stackshot/kcdata"
)

// UserSide is what was taken of a thread's user side, and where that lies if an editor
// reads it.
type UserSide struct {
	Walk      *kcdata.LinuxUserWalk // nil: nothing was taken
	WalkAt    kcdata.Position
	Registers []uint64
	Chain     []kcdata.LinuxUserLink
	Stack     []kcdata.UserBytes
	Raw       []kcdata.Position // chain and bytes
	call      kcdata.LinuxSyscall
}

// Visit takes note of an item of the thread; false: it is not of the user side.
// Data of stack pieces is the item's.
func (f *UserSide) Visit(it kcdata.Item) (bool, error) {
	elem, size, _ := it.Elem()
	switch {
	case it.Type == kcdata.TypeLinuxSyscall:
		return false, kcdata.Unmarshal(it.Data, &f.call)
	case it.Type == kcdata.TypeLinuxUserWalk:
		f.Walk, f.WalkAt = new(kcdata.LinuxUserWalk), it.Position()
		return true, kcdata.Unmarshal(it.Data, f.Walk)
	case elem == kcdata.TypeLinuxRegisters && size == 8:
		f.Registers = append(f.Registers, kcdata.Elements[uint64](it)...)
		return true, nil
	case elem == kcdata.TypeLinuxUserChain && size == kcdata.SizeOf(&kcdata.LinuxUserLink{}):
		f.Chain = append(f.Chain, kcdata.Elements[kcdata.LinuxUserLink](it)...)
	case it.Of() == kcdata.TypeLinuxUserBytes:
		var pieces []kcdata.UserBytes
		left := len(it.Data)
		for u, behind := range it.UserBytes() {
			pieces, left = append(pieces, u), behind
		}
		if left != 0 {
			return false, nil
		}
		f.Stack = append(f.Stack, pieces...)
	default:
		return false, nil
	}
	f.Raw = append(f.Raw, it.Position())
	return true, nil
}

// Usable says whether a stack can be made of it: there is memory, and it is of 64
// bits.
func (f *UserSide) Usable() bool {
	if f.Walk == nil || f.Walk.Flags&(kcdata.UserCompat|kcdata.UserNoMemory|kcdata.UserMoved) != 0 {
		return false
	}
	return len(f.Registers) > 0 || f.few() != nil
}

// few are the registers of a thread that nobody stopped; nil: it has all, or none.
func (f *UserSide) few() *unwind.FewRegisters {
	if f.Walk.Flags&kcdata.UserFewRegisters == 0 || len(f.Registers) > 0 || f.call.IP == 0 {
		return nil
	}
	return &unwind.FewRegisters{SP: f.call.SP, PC: f.call.IP}
}

// unfinished are the reasons for which a chain that was followed is not whole.
const unfinished = kcdata.UserTruncated | kcdata.UserPagedOut | kcdata.UserNoPage | kcdata.UserRefused | kcdata.UserOutside

func (f *UserSide) input(frames int) unwind.Input {
	return unwind.Input{
		Registers: f.Registers, Chain: f.Chain, Stack: f.Stack, Max: frames, Few: f.few(),
		ChainComplete: f.Walk.Flags&(kcdata.UserWalked|unfinished) == kcdata.UserWalked && len(f.Chain) < frames,
	}
}

// SetFlags changes the flags of a thread. SSTruncated follows from the other two. It writes
// only what changes: the first write to a page costs more than reading it.
func SetFlags(t *kcdata.ThreadSnapshot, set, unset uint64) {
	flags := (t.SSFlags | set) &^ (unset | kcdata.SSTruncated)
	if flags&(kcdata.SSTruncatedKernel|kcdata.SSTruncatedUser) != 0 {
		flags |= kcdata.SSTruncated
	}
	if flags != t.SSFlags {
		t.SSFlags = flags
	}
}

// Mark writes Walk to its record, and says in Apple's flags what it says of the stack
// that Thread made: whether that reached an outermost frame. thread is the position
// of the THREAD_SNAPSHOT; zero: there is none, or a short one.
func (f *UserSide) Mark(thread kcdata.Position) error {
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
