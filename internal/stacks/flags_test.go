package stacks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"stackshot/kcdata"
)

// The flag for either stack is there where that of one is, and nothing else of a
// thread changes.
func TestFlags(t *testing.T) {
	for _, c := range []struct {
		walk, was, want uint32
	}{
		{kcdata.UserComplete, 0x2803, 0x2803},
		{kcdata.UserComplete, 0xa883, 0x2803}, // unwound again, and whole by now
		{kcdata.UserComplete, 0x6803, 0x6883},
		{kcdata.UserTruncated, 0x2803, 0xa883},
		{kcdata.UserPagedOut | kcdata.UserUnwound, 0x4002, 0xc082},
		{0, 0xa883, 0xa883},
	} {
		thread := bytes.Repeat([]byte{0xee}, 128)
		binary.LittleEndian.PutUint64(thread[64:], uint64(c.was))
		want := bytes.Clone(thread)
		binary.LittleEndian.PutUint64(want[64:], uint64(c.want))
		w := kcdata.NewWriter(make([]byte, 1<<10))
		walk := kcdata.LinuxUserWalk{Flags: c.walk}
		if err := errors.Join(w.Struct(kcdata.TypeLinuxUserWalk, &kcdata.LinuxUserWalk{}), w.Bytes(kcdata.TypeThreadSnapshot, thread)); err != nil {
			t.Fatal(err)
		}
		var items []kcdata.Item
		for it, err := range kcdata.NewEditor(w.Written()).Items() {
			if items = append(items, it); err != nil {
				t.Fatal(err)
			}
		}
		f := &UserSide{Walk: &walk, WalkAt: items[0].Position()}
		if err := f.Mark(items[1].Position()); err != nil || !bytes.Equal(items[1].Data, want) {
			t.Errorf("walk %#x makes % x of flags %#x, want %#x: %v", c.walk, items[1].Data[64:72], c.was, c.want, err)
		}
		if got, err := kcdata.Record[kcdata.LinuxUserWalk](items[0]); err != nil || got != walk {
			t.Errorf("%+v, want %+v: %v", got, walk, err)
		}
		if err := f.Mark(kcdata.Position{}); err != nil { // of an older file
			t.Error(err)
		}
	}
}
