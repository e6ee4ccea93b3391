package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/kcdata"
)

// Engine is one way to capture. Engines: trap, pull, procfs.
type Engine interface {
	// Caps says what this engine can do. It is constant once the engine is open.
	Caps() Caps
	// Prepare makes the memory for a try of this size ready.
	Prepare(Size) error
	// Capture makes one try. The engine lends the bytes of what it returns: they are
	// valid until Release, or until the next Capture. With an error of kind
	// ErrNotStopped nothing was recorded, and another try may succeed; with ErrPanics
	// none can.
	Capture(ctx context.Context, j Job) (*capture.Raw, error)
	// Release ends the loan, and undoes what a Take has done to this process.
	Release()
	Close() error
}

// Caps is what an engine can do on this machine.
type Caps struct {
	Name       string
	Isolation  string
	Stops      bool             // it stops the machine: then one capture per machine
	UserStacks bool             // it takes the user side of threads
	Objects    *bpf.Objects     // nil: it works without BPF
	Warnings   []kcdata.Warning // for every file
}

// ProgramsMissing are the warnings of programs that the kernel refuses.
func ProgramsMissing(missing []bpf.Missing) (list []kcdata.Warning) {
	for _, m := range missing {
		list = append(list, kcdata.Warning{Code: "program_missing", Text: "this kernel refuses the BPF program " + m.Program + ": " + m.Why.Error()})
	}
	return list
}

var ErrNotStopped = errors.New("the machine was not stopped")

// ErrPanics says that the kernel panicked while a capture held the machine, and took its CPUs
// back. There is no other try, by no engine.
var ErrPanics = errors.New("the kernel panics")

// NotStopped is a try that was given up: why, and how long it held CPUs in vain. It is of
// kind ErrNotStopped.
type NotStopped struct {
	Why  string
	Held time.Duration
}

var ErrNobodyLeft = &NotStopped{Why: "no worker is left: all are starved behind real-time tasks"}

func (e *NotStopped) Error() string        { return ErrNotStopped.Error() + ": " + e.Why }
func (e *NotStopped) Is(target error) bool { return target == ErrNotStopped }

// Job is what one try of an engine is to do.
type Job struct {
	Pids   []bpf.CensusEntry // nil: the whole machine
	Size   Size
	Pause  time.Duration // what is left of the pause budget
	Settle time.Duration // between the two steps of the wake
	// The coordinator calls Missed with the CPUs that did not come, as soon as the
	// others run again. nil: nobody wants to know.
	Missed func(cpus []int)
}

// OptionError names an option whose value cannot be used.
type OptionError struct {
	Option string
	Value  string
	Reason string
}

func (e *OptionError) Error() string { return fmt.Sprintf("--%s %s: %s", e.Option, e.Value, e.Reason) }
