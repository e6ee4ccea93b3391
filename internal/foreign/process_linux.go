package foreign

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
	"stackshot/internal/spawn"
)

// window is the size in bytes of the memory through which a reader process hands over what
// it reads, and so the most that one request reads. Both processes have it mapped; it is
// file 1 of the reader process.
const window = 1 << 20

// process is a handle of another process. It serves one helper at a time.
type process struct {
	home  *processes
	child *spawn.Child
	data  []byte   // the window
	slots *os.File // the file of slots, by an open file description that the process shares; nil: none
}

// startProcess starts a reader process. Its file 0 is its end of a socket, files 1 and 2
// are the window, and file 3 is the file of slots, by which it is noted when it hangs.
// The window is file 2 since the Go runtime wants one and would open /dev/null, which a
// bare chroot lacks. What a crash prints goes there, and nobody reads it.
func startProcess(command []string, s slots) (*process, error) {
	shared, data, err := newWindow()
	if err != nil {
		return nil, err
	}
	defer shared.Close()
	noted := s.open()
	c, err := spawn.Start(context.Background(), spawn.Limit, command, shared, shared, noted)
	if err != nil {
		unix.Munmap(data)
		noted.Close()
		return nil, err
	}
	return &process{child: c, slots: noted, data: data}, nil
}

func newWindow() (*os.File, []byte, error) {
	fd, err := unix.MemfdCreate("stackshot window", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fd), "window")
	data, err := []byte(nil), f.Truncate(window)
	if err == nil {
		data, err = mapWindow(f)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, data, nil
}

func mapWindow(f *os.File) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, window, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// leave ends the conversation with a process. An idle one exits when its socket is shut. If
// it hangs, leave kills it and waits for it: until the kernel lets it go, the helper that
// waits here counts as hanging.
func (p *process) leave(hangs bool) {
	p.child.End()
	unix.Munmap(p.data)
	if hangs {
		p.child.Process.Kill()
		p.child.Process.Wait()
	} else {
		go p.child.Process.Wait()
	}
	p.slots.Close()
}

func (p *process) mark() *mark { return &mark{file: p.slots, pid: p.child.Process.Pid} }

func (p *process) do(r request, buf []byte) (a answer, err error) {
	r.Len = min(len(buf), window)
	switch err := p.child.Ask(r, &a); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return a, procfs.ErrTimeout
	case err != nil:
		return a, ErrGone
	case a.Errno != 0:
		return a, a.Errno
	}
	a.Read = copy(buf, p.data[:min(max(a.Read, 0), window)])
	return a, nil
}

func (p *process) close() {
	if _, err := p.do(request{Op: opClose}, nil); err != nil {
		p.home.count(-1)
		p.leave(true)
	} else {
		p.home.give(p)
	}
}

// Serve is what a reader process, started by Options.Command, does with its files 0 and 1.
// It returns when its starter has no more requests or is gone. It may hang for good in a
// file system.
func Serve(conn io.ReadWriter, shared *os.File) error {
	data, err := mapWindow(shared)
	if err != nil {
		return err
	}
	file := newLocal(slots{})
	return spawn.Serve(conn, func(r request) answer {
		a, err := file.do(r, data[:min(max(r.Len, 0), window)])
		if err != nil && !errors.As(err, &a.Errno) {
			a.Errno = unix.EIO
		}
		return a
	})
}
