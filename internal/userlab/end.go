//go:build linux

package userlab

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// Stop sends SIGSTOP to every member and returns when /proc shows all their
// threads stopped. A thread in state D does not stop: it fails the test after
// 20 seconds.
func (p *Process) Stop() {
	p.tb.Helper()
	p.signal(unix.SIGSTOP)
	err := testtask.WaitFor(endTime, func() (bool, error) {
		for _, pid := range p.Members {
			states, err := threadStates(pid)
			if err != nil {
				return false, err
			}
			if slices.ContainsFunc(states, func(s byte) bool { return s != 'T' && s != 't' && s != 'Z' }) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		p.tb.Fatalf("userlab: stop of %s: %v", p.Name, err)
	}
}

// signal reaches members only: until their first is reaped none of them is.
func (p *Process) signal(s unix.Signal) {
	if p.ended {
		return
	}
	for _, pid := range p.Members {
		unix.Kill(pid, s)
	}
}

// Witness asks gdb about every member, which is stopped before and after.
func (p *Process) Witness() ([]Thread, error) {
	p.tb.Helper()
	testneed.Program(p.tb, "gdb")
	p.Stop()
	defer p.Stop() // gdb may have let them go on
	var all []Thread
	for _, pid := range p.Members {
		ts, err := Witness(pid)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		all = append(all, ts...)
	}
	return all, nil
}

// Log is what the program has written to standard error.
func (p *Process) Log() string {
	if p.errFile == nil {
		return ""
	}
	b := make([]byte, 1<<16)
	n, _ := p.errFile.ReadAt(b, 0)
	return string(b[:n])
}

// Close ends the process and all it has forked, and waits until they are gone.
// The test's cleanup calls it; a second call does nothing.
func (p *Process) Close() {
	if p.ended {
		return
	}
	p.ended = true
	for _, f := range slices.Backward(p.release) {
		f()
	}
	if p.life != nil {
		p.life.Close()
	}
	if p.cmd != nil && p.cmd.Process != nil {
		p.cmd.Process.Kill() // by a pidfd; its group follows through the pipe
		late := time.AfterFunc(endTime, func() { p.outFile.Close() })
		io.Copy(io.Discard, p.out) // until the last member is gone
		if !late.Stop() {
			p.tb.Errorf("userlab: %s: processes %v, or some that they made, live after %v", p.Name, p.Members, endTime)
			return
		}
		var exit *exec.ExitError
		if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
			p.tb.Errorf("userlab: %s: %v", p.Name, err)
		}
		for _, f := range p.after {
			f()
		}
	}
	if p.outFile != nil {
		p.outFile.Close()
		p.errFile.Close()
	}
}
