package stacks

import (
	"bytes"
	"encoding/binary"
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
		f := &Found{Walk: &kcdata.LinuxUserWalk{Flags: c.walk}}
		if f.Mark(thread); !bytes.Equal(thread, want) {
			t.Errorf("walk %#x makes % x of flags %#x, want %#x", c.walk, thread[64:72], c.was, c.want)
		}
	}
	(&Found{Walk: &kcdata.LinuxUserWalk{}}).Mark(make([]byte, 71)) // of an older file: no such field
}
