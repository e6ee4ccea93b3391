package arm

import (
	"fmt"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/engine"
	"stackshot/internal/panicregion"
	"stackshot/internal/topology"
)

// Options are constant while the machine is armed.
type Options struct {
	Key        byte          // the SysRq that asks for a capture
	Sysrq      bool          // be there for it
	Panic      bool          // and for a panic
	Pause      time.Duration // the longest that one walk may take
	Buffer     int64         // bytes for the records; 0: twice what today's threads take
	UserStacks int           // bpf.UserOff, UserFP, UserAuto
	Wait       bool          // record what threads wait for
	Redact     bool          // no user stacks, no mappings, no arguments, no register values
	Version    string        // of this program, for the file

	lockPath string // "": resident.Path
}

// Bounds of Options.Pause. The walk has the CPU to itself, with interrupts off where the kernel
// lets it: beyond a few seconds watchdogs of the machine would fire.
const (
	DefaultPause = 500 * time.Millisecond
	MinPause     = time.Millisecond
	MaxPause     = 5 * time.Second
)

// Of each user stack at most this is taken, as in a capture.
const (
	stackBytes = 24 << 10
	userFrames = 256
)

func (o *Options) check() error {
	if why := KernelKey(o.Key); o.Sysrq && why != "" {
		return &engine.OptionError{Option: "sysrq", Value: fmt.Sprintf("%q", o.Key), Reason: why}
	}
	if o.Pause < MinPause || o.Pause > MaxPause {
		return &engine.OptionError{Option: "panic-pause", Value: o.Pause.String(), Reason: fmt.Sprintf("want %v to %v", MinPause, MaxPause)}
	}
	if most := engine.MaxBuffer(); o.Buffer != 0 && (o.Buffer < engine.MinBuffer || o.Buffer > most) {
		return &engine.OptionError{Option: "buffer", Value: fmt.Sprint(o.Buffer), Reason: fmt.Sprintf("want %d to %d bytes", engine.MinBuffer, most)}
	}
	return nil
}

// user is what the programs take of user stacks; m is nil where user memory cannot be read.
func (o *Options) user(m *bpf.DirectMap) bpf.UserStacks {
	u := bpf.UserStacks{Mode: o.UserStacks, Frames: userFrames, Bytes: stackBytes, Memory: m}
	if m == nil || o.Redact {
		u.Mode = bpf.UserOff
	}
	return u
}

// Try attaches the hooks for a moment, as Open does, and says which the kernel takes. wakes: a
// SysRq is answered by an ordinary capture. No key asks for anything meanwhile.
func Try() (hooks []bpf.Hook, wakes bool, err error) {
	a := &Armed{options: Options{Sysrq: true, Panic: true, Pause: DefaultPause, UserStacks: bpf.UserAuto, Wait: true}}
	if a.topo, err = topology.Machine(); err != nil {
		return nil, false, err
	}
	_, cfg, err := a.prepare()
	if err != nil {
		return nil, false, err
	}
	return bpf.TryPanic(cfg, bpf.PanicConfig{At: panicregion.PageSize, Records: engine.MinBuffer, Pause: DefaultPause, Sysrq: true, Panic: true})
}
