package snapshot

import (
	"fmt"

	"stackshot/internal/bpf"
)

// UserStacks says what is taken of user stacks. "" is UserStacksAuto.
type UserStacks string

// What is taken of a thread's user stack in the window. The frame-pointer chain
// alone may lack callers, which the bytes hold.
const (
	UserStacksAuto UserStacks = "auto" // chain, and the stack as far as that goes, or to a limit where it has no end
	UserStacksFP   UserStacks = "fp"   // the chain
	UserStacksOff  UserStacks = "off"
)

// The stacks of the main threads of node and java, as installed, are larger than
// 16 KiB.
const (
	defaultStackBytes = 24 << 10
	defaultUserFrames = 256
)

// userModes are what cfg_user_mode calls them (internal/bpf/record_user.h).
var userModes = map[UserStacks]int{UserStacksOff: bpf.UserOff, UserStacksFP: bpf.UserFP, UserStacksAuto: bpf.UserAuto}

func (o *Options) checkUser() error {
	if _, ok := userModes[o.UserStacks]; !ok {
		return badOption("user-stacks", string(o.UserStacks), "want auto, fp or off")
	}
	if o.StackBytes < bpf.MinUserBytes || o.StackBytes > bpf.MaxUserBytes {
		return badOption("stack-bytes", fmt.Sprint(o.StackBytes), fmt.Sprintf("want %d to %d", bpf.MinUserBytes, bpf.MaxUserBytes))
	}
	if o.UserFrames < 1 || o.UserFrames > bpf.MaxUserFrames {
		return badOption("user-frames", fmt.Sprint(o.UserFrames), fmt.Sprintf("want 1 to %d", bpf.MaxUserFrames))
	}
	return nil
}

// userTaking is what an engine with BPF programs takes of user stacks. The error says why
// it takes none although some were asked for. Even then the programs need to know
// which memory is ordinary RAM.
func (o *Options) userTaking(find func() (*bpf.DirectMap, error)) (bpf.UserStacks, error) {
	u := bpf.UserStacks{Mode: userModes[o.UserStacks], Frames: o.UserFrames, Bytes: o.StackBytes}
	var err error
	u.Memory, err = find()
	if u.Mode == bpf.UserOff || o.Redact {
		return bpf.UserStacks{Memory: u.Memory}, nil
	}
	if err != nil {
		return bpf.UserStacks{}, err
	}
	return u, nil
}

// Room for a thread's user stack in the first try's buffer: chain, and bytes, of
// which an ordinary machine has 2.2 KiB for each thread that has a user stack (a
// quarter is added to all).
const (
	chainEstimate = 256
	bytesEstimate = 3 << 9
)

// userEstimate is for one thread.
func (o *Options) userEstimate() int {
	switch {
	case o.Redact || o.UserStacks == UserStacksOff:
		return 0
	case o.UserStacks == UserStacksFP:
		return chainEstimate
	}
	return chainEstimate + min(o.StackBytes, bytesEstimate)
}
