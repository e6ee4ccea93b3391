package stacks

import (
	"encoding/binary"

	"stackshot/kcdata"
)

// Flags of ths_ss_flags that say that a stack goes on where it ends in the file:
// either of the two, the kernel's, the user's (kcdata.h of XNU).
const (
	Truncated       = 0x80
	TruncatedKernel = 0x4000
	TruncatedUser   = 0x8000
)

// SetFlags changes the flags of a thread: thread is the payload of its
// THREAD_SNAPSHOT. Truncated follows from the other two.
func SetFlags(thread []byte, change func(flags uint64) uint64) {
	const at = 64 // ths_ss_flags of thread_snapshot_v2 and later
	if len(thread) < at+8 {
		return
	}
	flags := change(binary.LittleEndian.Uint64(thread[at:])) &^ Truncated
	if flags&(TruncatedKernel|TruncatedUser) != 0 {
		flags |= Truncated
	}
	binary.LittleEndian.PutUint64(thread[at:], flags)
}

// Mark says in Apple's flags what Walk says of the stack that Thread made: whether
// it reached an outermost frame.
func (f *Found) Mark(thread []byte) {
	SetFlags(thread, func(flags uint64) uint64 {
		if f.Walk.Flags&kcdata.UserComplete != 0 {
			return flags &^ TruncatedUser
		}
		return flags | TruncatedUser
	})
}
