//go:build linux && (amd64 || arm64)

package testtask

import (
	"fmt"
	"slices"
	"strings"
)

// A Want is what a correct snapshot says of a process.
type Want struct {
	Threads  int        // exact, the leader included
	Leader   ThreadWant // of the thread whose tid is the pid
	Others   ThreadWant // of every other thread
	Comm     string     // raw, at most 15 bytes
	Nice     int
	InnerPid int  // pid in the innermost pid namespace, 0 for the same
	Kernel   bool // a kernel thread
}

// NoSyscall marks a thread whose system call is not claimed.
const NoSyscall = -1

// A ThreadWant is what a correct snapshot says of a thread.
type ThreadWant struct {
	States  string     // state letters of /proc, any of them
	Stack   [][]string // kernel functions: one of each group is in the stack, groups leaf first
	NoStack bool       // no kernel stack at all
	Exiting bool       // PF_EXITING
	Syscall int        // number, or NoSyscall
}

// Check holds a state letter and a kernel stack, leaf first, against w.
// Compiler suffixes of a function (".constprop.0") are ignored.
func (w ThreadWant) Check(state byte, stack []string) error {
	if strings.IndexByte(w.States, state) < 0 {
		return fmt.Errorf("state %q, want one of %q", state, w.States)
	}
	if w.NoStack && len(stack) > 0 {
		return fmt.Errorf("kernel stack %v, want none", stack)
	}
	rest := stack
	for _, group := range w.Stack {
		i := slices.IndexFunc(rest, func(f string) bool {
			f, _, _ = strings.Cut(f, ".")
			return slices.Contains(group, f)
		})
		if i < 0 {
			return fmt.Errorf("kernel stack %v, want one of %v", stack, group)
		}
		rest = rest[i+1:]
	}
	return nil
}

// Of is the thread's part of w, for the process pid.
func (w Want) Of(pid, tid int) ThreadWant {
	if pid == tid {
		return w.Leader
	}
	return w.Others
}
