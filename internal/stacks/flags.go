package stacks

import (
	"encoding/binary"

	"stackshot/kcdata"
)

// SetFlags changes the flags of a thread: thread is the payload of its
// THREAD_SNAPSHOT. SSTruncated follows from the other two.
func SetFlags(thread []byte, change func(flags uint64) uint64) {
	const at = 64 // ths_ss_flags of thread_snapshot_v2 and later
	if len(thread) < at+8 {
		return
	}
	flags := change(binary.LittleEndian.Uint64(thread[at:])) &^ kcdata.SSTruncated
	if flags&(kcdata.SSTruncatedKernel|kcdata.SSTruncatedUser) != 0 {
		flags |= kcdata.SSTruncated
	}
	binary.LittleEndian.PutUint64(thread[at:], flags)
}

// Mark says in Apple's flags what Walk says of the stack that Thread made: whether
// it reached an outermost frame.
func (f *Found) Mark(thread []byte) {
	SetFlags(thread, func(flags uint64) uint64 {
		if f.Walk.Flags&kcdata.UserComplete != 0 {
			return flags &^ kcdata.SSTruncatedUser
		}
		return flags | kcdata.SSTruncatedUser
	})
}
