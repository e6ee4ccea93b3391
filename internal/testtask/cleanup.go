//go:build linux && (amd64 || arm64)

package testtask

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// endTime is how long a killed process may take to be gone.
const endTime = 20 * time.Second

// Close ends and reaps every process of f, and fails the test by name for each
// that stays. The test's cleanup calls it; a second call does nothing.
func (f *Fixture) Close() {
	f.tb.Helper()
	if f.over {
		return
	}
	f.over = true
	if f.stage != nil && f.stage.Process != nil {
		f.endAll()
	}
	if f.life != nil {
		f.life.Close()
	}
	if f.stage != nil && f.stage.Process != nil {
		if err := f.reapAll(f.stage.Process.Pid); err != nil {
			f.tb.Error(err)
		}
	}
	if f.log != nil {
		f.log.Close()
	}
	for i := range f.Children {
		f.Children[i].Pid = f.Children[i].pidNow()
		f.Children[i].slot = nil
	}
	f.board.close()
}

// End kills one process and waits until it is reaped: by us, or by its parent
// where that is another actor. What waits in state D for role "owner" ends only
// after that one; asked for it before, End says so after 20 seconds.
func (f *Fixture) End(c *Child) error {
	if c.slot == nil || c.reaped {
		return nil
	}
	if err := c.kill(); err != nil {
		return err
	}
	return WaitFor(endTime, func() (bool, error) {
		if c.within {
			_, err := readStat(fmt.Sprintf("/proc/%d", c.pidNow()))
			c.reaped = err != nil
			return c.reaped, nil
		}
		pid, err := unix.Wait4(c.pidNow(), nil, unix.WNOHANG, nil)
		c.reaped = pid == c.pidNow()
		return c.reaped, err
	})
}

// endAll kills all that is left, in an order that leaves nothing to init: what
// another actor must reap goes while that one lives.
func (f *Fixture) endAll() {
	atomic.StoreUint32(&f.board.head.stop, 1)
	for i := range f.Children {
		c := &f.Children[i]
		switch {
		case c.Kind.Name == exitStorm.Name && c.pidNow() != 0:
			f.complain(c, WaitFor(endTime, c.ended))
		case c.within:
			parent := &f.Children[i-1]
			// A parent that has not come to make it yet would make it after, and wait.
			f.complain(c, WaitFor(endTime, func() (bool, error) {
				over, err := parent.ended()
				return over || c.pidNow() != 0, err
			}))
			f.complain(c, f.End(c))
			f.complain(c, WaitFor(endTime, parent.ended))
		}
	}
	for i := range f.Children {
		f.complain(&f.Children[i], f.Children[i].kill())
	}
}

func (f *Fixture) complain(c *Child, err error) {
	if err != nil {
		f.tb.Errorf("testtask: end of %v: %v", c, err)
	}
}

// kill signals c if the stage made it and nobody can have reaped it: until
// then its number is not given to another process.
func (c *Child) kill() error {
	pid := c.pidNow()
	if c.slot == nil || c.reaped || pid == 0 {
		return nil
	}
	if c.within { // its parent may have reaped it
		if st, err := readStat(fmt.Sprintf("/proc/%d", pid)); err != nil || st.comm != c.Want.Comm {
			c.reaped = true
			return nil
		}
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill(%d): %w", pid, err)
	}
	return nil
}

// ended says whether c is a zombie, or less.
func (c *Child) ended() (bool, error) {
	st, err := readStat(fmt.Sprintf("/proc/%d", c.pidNow()))
	return err != nil || st.state == 'Z', nil
}

// reapAll waits for all children in the actors' process group, those too that
// the stage did not live to note.
func (f *Fixture) reapAll(group int) error {
	err := WaitFor(endTime, func() (bool, error) {
		for {
			pid, err := unix.Wait4(-group, nil, unix.WNOHANG, nil)
			switch {
			case errors.Is(err, unix.ECHILD):
				return true, nil
			case errors.Is(err, unix.EINTR):
			case err != nil:
				return false, err
			case pid == 0:
				return false, nil
			default:
				f.reaped(pid)
			}
		}
	})
	if err == nil {
		return nil
	}
	var left []string
	for i := range f.Children {
		if c := &f.Children[i]; c.slot != nil && !c.reaped && !c.within {
			left = append(left, c.String())
		}
	}
	return fmt.Errorf("testtask: not reaped: %v: %w", left, err)
}

func (f *Fixture) reaped(pid int) {
	for i := range f.Children {
		if c := &f.Children[i]; c.slot != nil && c.pidNow() == pid {
			c.reaped = true
		}
	}
}
