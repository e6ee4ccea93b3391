package stacks

import (
	"testing"

	"stackshot/internal/image"
	"stackshot/kcdata"
)

// Only a chain that was walked, on no stack that is known, is called one of an alternate stack.
func TestAltStack(t *testing.T) {
	for _, c := range []struct {
		flags uint32
		end   uint64
		want  bool
	}{
		{kcdata.UserWalked, 0, true},
		{kcdata.UserWalked, 0x7000, false},
		{0, 0, false},
	} {
		for _, chainOnly := range []bool{false, true} {
			u := Unwinder{Arch: "amd64", Frames: 10, ChainOnly: chainOnly}
			f := UserSide{Walk: &kcdata.LinuxUserWalk{Flags: c.flags, StackEnd: c.end}, Registers: make([]uint64, 21)}
			u.Thread(u.Process(image.Process{}, nil), &f)
			if got := f.Walk.Flags&kcdata.UserAltStack != 0; got != c.want {
				t.Errorf("flags %#x, end of the stack %#x: alternate stack %v", c.flags, c.end, got)
			}
		}
	}
}
