package image

import (
	"errors"
	"fmt"
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
	errGone      = errors.New("the process has ended")
	errAnother   = errors.New("its pid is another process's by now")
	errNoStart   = errors.New("the capture has no start time of the process")
)

// Seen is a process that the caller has just seen; pid 0: none.
func Seen(pid int) Process {
	if pid <= 0 {
		return Process{}
	}
	return Process{Proc: "/proc", Pid: uint64(pid), byNumber: true}
}

// Path is a file of the process below its Proc.
func (p Process) Path(rest string) string { return fmt.Sprintf("%s/%d/%s", p.Proc, p.Pid, rest) }
