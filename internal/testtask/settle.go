//go:build linux && (amd64 || arm64)

package testtask

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// settleTime is how long Start waits for /proc to agree.
var settleTime = patience()

// patience is longer on a machine that says it is emulated; whoever is there
// sooner is not waited for.
func patience() time.Duration {
	if _, emulated := os.LookupEnv("STACKSHOT_TIME_FACTOR"); emulated {
		return 80 * time.Second
	}
	return 20 * time.Second
}

// Verify holds what /proc says now against c.Want, and gives the first
// difference. It also lists the threads it saw.
func (c *Child) Verify() ([]int, error) {
	tids, err := readTids(c.Pid)
	if err != nil {
		return nil, err
	}
	if len(tids) != c.Want.Threads {
		return tids, fmt.Errorf("%d threads, want %d", len(tids), c.Want.Threads)
	}
	for _, tid := range tids {
		if err := c.verifyThread(tid); err != nil {
			return tids, fmt.Errorf("thread %d: %w", tid, err)
		}
	}
	if c.Want.InnerPid != 0 {
		if n, err := readInnerPid(c.Pid); err != nil || n != c.Want.InnerPid {
			return tids, fmt.Errorf("pid in its namespace %d (%v), want %d", n, err, c.Want.InnerPid)
		}
	}
	return tids, nil
}

func (c *Child) verifyThread(tid int) error {
	dir := fmt.Sprintf("/proc/%d/task/%d", c.Pid, tid)
	st, err := readStat(dir)
	if err != nil {
		return err
	}
	stack, err := readStack(dir)
	if err != nil {
		return err
	}
	w := c.Want.Of(c.Pid, tid)
	w.Exiting = w.Exiting || st.state == 'Z' // each zombie has the flag
	if err := w.Check(st.state, stack); err != nil {
		return err
	}
	switch {
	case st.comm != c.Want.Comm:
		return fmt.Errorf("name %q, want %q", st.comm, c.Want.Comm)
	case st.nice != c.Want.Nice:
		return fmt.Errorf("nice %d, want %d", st.nice, c.Want.Nice)
	case (st.flags&pfExiting != 0) != w.Exiting:
		return fmt.Errorf("flags %#x: PF_EXITING, want %v", st.flags, w.Exiting)
	case (st.flags&pfKthread != 0) != c.Want.Kernel:
		return fmt.Errorf("flags %#x: kernel thread, want %v", st.flags, c.Want.Kernel)
	}
	if w.Syscall == NoSyscall {
		return nil
	}
	if nr, err := readSyscall(dir); err != nil || nr != w.Syscall {
		return fmt.Errorf("system call %d (%v), want %d", nr, err, w.Syscall)
	}
	return nil
}

// settle waits until every actor of one phase is what it claims to be. The last comes first: who
// waits for a child is looked at when the child has stopped, since a child that stops wakes it.
func (f *Fixture) settle(second bool, deadline time.Time) error {
	for i := range slices.Backward(f.Children) {
		c := &f.Children[i]
		if c.second != second {
			continue
		}
		if err := f.settleOne(c, deadline); err != nil {
			return fmt.Errorf("testtask: %v: %w", c, err)
		}
	}
	return nil
}

func (f *Fixture) settleOne(c *Child, deadline time.Time) error {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		if err := c.failure(); err != nil {
			return err
		}
		c.Pid = c.pidNow()
		err := errors.New("never made")
		switch step, last := c.steps(); {
		case c.Pid == 0:
		case step != last:
			err = fmt.Errorf("in step %d of %d", step, last)
		default:
			c.Tids, err = c.Verify()
		}
		if err == nil {
			return c.failure()
		}
		if errors.Is(err, os.ErrPermission) {
			return fmt.Errorf("kernel stacks cannot be read, run as root: %w", err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not reached within %v: %w", settleTime, err)
		}
		time.Sleep(pause)
	}
}
