package image

import (
	"errors"
	"fmt"
	"slices"

	"stackshot/kcdata"
)

// Process is a process as a capture saw it. It is constant.
type Process struct {
	Proc  string // "/proc"; "": of another machine, or of an earlier boot
	Pid   uint64
	Start uint64 // CLOCK_BOOTTIME, ns; 0: not known

	byNumber bool // its number is enough: it was seen just now
}

// Why a process's files are not reached through it.
var (
	errElsewhere = errors.New("a process of another machine")
	ErrEnded     = errors.New("the process has ended")
	errAnother   = fmt.Errorf("%w, and its number is another process's by now", ErrEnded)
	errNoStart   = errors.New("the capture has no start time of the process")
)

// Seen is a process that the caller has just seen; pid 0: none.
func Seen(pid int) Process {
	if pid <= 0 {
		return Process{}
	}
	return Process{Proc: "/proc", Pid: uint64(pid), byNumber: true}
}

// Of is a task of a capture, where /proc is at proc. If its first thread had ended, /proc has
// no files under its number any more: then it is the first thread that lived.
func Of(t *kcdata.Task, proc string) Process {
	p := Process{Proc: proc, Pid: t.ID, Start: t.Linux.StartBoottime}
	ended := func(th *kcdata.Thread) bool { return th.Linux.ExitState != 0 }
	if !slices.ContainsFunc(t.Threads, func(th *kcdata.Thread) bool { return th.ID == t.ID && ended(th) }) {
		return p
	}
	for _, th := range t.Threads {
		if !ended(th) && th.Linux.StartBoottime != 0 {
			return Process{Proc: proc, Pid: th.ID, Start: th.Linux.StartBoottime}
		}
	}
	return p
}

// Path is a file of the process below its Proc.
func (p Process) Path(rest string) string { return fmt.Sprintf("%s/%d/%s", p.Proc, p.Pid, rest) }
