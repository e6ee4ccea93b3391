package stacks

import (
	"encoding/binary"

	"stackshot/internal/unwind"
	"stackshot/kcdata"
)

const itemHeader = 16

// Span is a piece of a buffer: whole items.
type Span struct{ Off, Len int }

func spanOf(it kcdata.Item) Span {
	return Span{it.Offset, itemHeader + (len(it.Data)+15)&^15}
}

// Found is what was taken of a thread's user side, and where it lies in the
// buffer that is read.
type Found struct {
	Walk      *kcdata.LinuxUserWalk // nil: nothing was taken
	WalkAt    int                   // of its payload
	Registers []uint64
	Chain     []kcdata.LinuxUserLink
	Stack     []kcdata.UserBytes
	Raw       []Span // chain and bytes
}

// Visit takes note of an item of the thread; false: it is not of the user side.
// Data of stack pieces is the item's.
func (f *Found) Visit(it kcdata.Item) (bool, error) {
	elem, size, count := it.Elem()
	switch {
	case it.Type == kcdata.TypeLinuxUserWalk:
		f.Walk, f.WalkAt = new(kcdata.LinuxUserWalk), it.Offset+itemHeader
		return true, kcdata.Unmarshal(it.Data, f.Walk)
	case elem == kcdata.TypeLinuxRegisters && size == 8:
		for i := range count {
			f.Registers = append(f.Registers, binary.LittleEndian.Uint64(it.Data[8*i:]))
		}
		return true, nil
	case elem == kcdata.TypeLinuxUserChain && size == 16:
		for b := it.Data[:16*count]; len(b) > 0; b = b[16:] {
			f.Chain = append(f.Chain, kcdata.LinuxUserLink{FP: binary.LittleEndian.Uint64(b), PC: binary.LittleEndian.Uint64(b[8:])})
		}
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
	f.Raw = append(f.Raw, spanOf(it))
	return true, nil
}

// Usable says whether a stack can be made of it: there is memory, and it is of 64
// bits.
func (f *Found) Usable() bool {
	return f.Walk != nil && f.Walk.Flags&(kcdata.UserCompat|kcdata.UserNoMemory) == 0 && len(f.Registers) > 0
}

// unfinished are the reasons for which a chain that was followed is not whole.
const unfinished = kcdata.UserTruncated | kcdata.UserPagedOut | kcdata.UserNoPage | kcdata.UserRefused | kcdata.UserOutside

func (f *Found) input(frames int) unwind.Input {
	return unwind.Input{
		Registers: f.Registers, Chain: f.Chain, Stack: f.Stack, Max: frames,
		ChainComplete: f.Walk.Flags&(kcdata.UserWalked|unfinished) == kcdata.UserWalked && len(f.Chain) < frames,
	}
}
