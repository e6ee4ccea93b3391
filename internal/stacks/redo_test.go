package stacks

import (
	"encoding/binary"
	"errors"
	"testing"

	"stackshot/kcdata"
)

// A file whose walk record is shorter than its kind is refused, not read past.
func TestShortWalk(t *testing.T) {
	walk, err := binary.Append(nil, binary.LittleEndian, &kcdata.LinuxUserWalk{Flags: kcdata.UserWalked})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{len(walk), len(walk) - 8, 16, 4} {
		w := kcdata.NewWriter(make([]byte, 1<<12))
		err := errors.Join(w.Begin(kcdata.MagicStackshot), w.BeginContainer(kcdata.TypeTask, 1), w.BeginContainer(kcdata.TypeThread, 1),
			w.Bytes(kcdata.TypeLinuxUserWalk, walk[:size]),
			w.StructArray(kcdata.TypeLinuxUserChain, []kcdata.LinuxUserLink{{FP: 16, PC: 5}}),
			w.StructArray(kcdata.TypeLinuxRegisters, make([]kcdata.LinuxRegister, 21)),
			w.Uint64s(kcdata.TypeUserStackLR64, []uint64{1, 2}), w.Bytes(kcdata.TypeLinuxUserHow, []byte{1, 2}),
			w.EndContainer(1), w.EndContainer(1), w.End())
		if err != nil {
			t.Fatal(err)
		}
		s, err := kcdata.ParseSnapshot(w.Written())
		if err != nil {
			t.Fatal(err)
		}
		u := Unwinder{Arch: "amd64", Frames: 10}
		out, sum, err := u.Redo(w.Written(), s, false)
		if err == nil {
			_, err = kcdata.Check(out)
		}
		if whole := size > len(walk)-16; whole == (err != nil) || sum.Threads != 1 { // items are padded to 16 bytes
			t.Errorf("%d bytes: %+v, %v", size, sum, err)
		}
	}
}
