package bpf

import (
	"cmp"

	"github.com/cilium/ebpf"
)

// What is taken of user stacks (record_user.h, enum user_mode).
const (
	UserOff  = 0
	UserFP   = 1 // the frame-pointer chain
	UserAuto = 2 // that, and the bytes of the stack, to its end or to a limit
)

// Bounds of what is taken of one user stack.
const (
	MaxUserFrames = 1000
	MaxUserBytes  = 64 << 10
	MinUserBytes  = 1 << 10 // the top, taken in any case
)

// UserStacks says what is taken of each thread's user stack. The zero value takes nothing.
type UserStacks struct {
	Mode   int        // User*
	Frames int        // of the chain, at most MaxUserFrames
	Bytes  int        // of the stack; at most MaxUserBytes
	Memory *DirectMap // nil: nothing, and no process's mappings either

	room int // bytes for the stack bytes and links of a thread; 0: enough for the most of both
}

func (u UserStacks) set(spec *ebpf.CollectionSpec) error {
	if u.Memory == nil {
		return nil
	}
	if err := setDirectMap(spec, u.Memory); err != nil || u.Mode == UserOff {
		return err
	}
	return setValues(spec, map[string]uint32{
		"cfg_user_mode":   uint32(u.Mode),
		"cfg_user_frames": uint32(min(u.Frames, MaxUserFrames)),
		"cfg_user_bytes":  uint32(min(u.Bytes, MaxUserBytes)),
		"cfg_user_room":   uint32(cmp.Or(u.room, MaxUserBytes+sizeOfLink*MaxUserFrames)),
	})
}

// The kernel shows what an iterator says of one thread in one buffer
// (kernel/bpf/bpf_iter.c, bpf_seq_read: 8 pages of 4 KiB).
const (
	seqBuffer = 32 << 10
	// All records of a thread but its stacks; for the first thread those of the task
	// too (stackshot.bpf.c, SEQ_FIXED).
	seqFixed = 13 << 9
	// Headers and padding: stack bytes that are not adjacent are items of their own.
	seqPieces = 512
)

const sizeOfLink = 16 // struct linux_user_link

// PullStackBytes is how many bytes of a user stack engine pull can take beside a chain of
// so many links. All records of a thread must fit the kernel's buffer; the kernel stack
// and the links are subtracted.
func (Config) PullStackBytes(links int) int {
	left := seqBuffer - seqFixed - seqPieces - 8*StackDepth() - sizeOfLink*links
	return max(min(left, MaxUserBytes)&^7, 0)
}
