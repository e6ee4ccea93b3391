package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stackshot/internal/bpf"
	"stackshot/kcdata"

	"golang.org/x/sys/unix"
)

// engine is one way to capture. Engines: trap, pull, procfs.
type engine interface {
	// caps says what this engine can do. It is constant once the engine is open.
	caps() caps
	// prepare has the memory for a try of this size ready.
	prepare(size) error
	// capture makes one try. The bytes of what it returns are lent: they hold
	// until release, or until the next capture. With an error of kind
	// errNotStopped nothing was recorded, and another try may succeed.
	capture(ctx context.Context, j job) (*captured, error)
	// release ends the loan, and what a Take has done to this process.
	release()
	close() error
}

// caps is what an engine can do on this machine.
type caps struct {
	name       string
	isolation  string
	stops      bool             // the machine is held: one capture per machine then
	userStacks bool             // it takes what user stacks are made of
	objects    *bpf.Objects     // nil: it works without BPF
	warnings   []kcdata.Warning // for every file
}

var errNotStopped = errors.New("the machine was not stopped")

// notStopped is a try that was given up: why, and how long it kept CPUs from
// their work all the same. It is of kind errNotStopped.
type notStopped struct {
	why  string
	held time.Duration
}

var errNobodyLeft = &notStopped{why: "no worker is left: all are starved behind real-time tasks"}

func (e *notStopped) Error() string        { return errNotStopped.Error() + ": " + e.why }
func (e *notStopped) Is(target error) bool { return target == errNotStopped }

// job is what an engine is asked for in one try.
type job struct {
	pids   []bpf.CensusEntry // nil: the whole machine
	size   size
	pause  time.Duration // what is left of the pause budget
	settle time.Duration // between the two steps of the wake
	// missed is called by the coordinator with the CPUs that did not come, as
	// soon as the others run again; nil: nobody asks.
	missed func(cpus []int)
}

// OptionError names an option whose value cannot be used.
type OptionError struct {
	Option string
	Value  string
	Reason string
}

func (e *OptionError) Error() string { return fmt.Sprintf("--%s %s: %s", e.Option, e.Value, e.Reason) }

// captureError is a system call of a capture that failed.
type captureError struct {
	what  string
	errno unix.Errno
}

func (e *captureError) Error() string { return e.what + ": " + e.errno.Error() }
func (e *captureError) Unwrap() error { return e.errno }

// isolationNoneWarning is for every file of an engine whose workers got no priority.
func isolationNoneWarning(why error) kcdata.Warning {
	return kcdata.Warning{Code: "isolation_none", Text: "other tasks ran during the capture: " + why.Error()}
}
