package spawn

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Limit is how long a start takes at most. A test on a busy machine sets a longer one.
var Limit = time.Second

// ErrHeld says that a process was made and did not begin in time.
var ErrHeld = errors.New("a helper process was started but did not begin")

// maxAnswer is the longest line that a child may say, in bytes: an answer holds at most a
// path, in base64.
const maxAnswer = 16 << 10

// Child is a process that has begun. One goroutine at a time asks it.
type Child struct {
	Process *os.Process // to be waited for by the caller
	Conn    *os.File    // the other end of its file 0, a stream socket; knows deadlines

	answers *bufio.Reader // of Conn
	bad     error         // written by the goroutine that asks: why the child is asked no more
}

func newChild(p *os.Process, conn *os.File) *Child {
	return &Child{Process: p, Conn: conn, answers: bufio.NewReaderSize(conn, maxAnswer)}
}

// socketPair makes a pair of sockets. Our end knows deadlines.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	unix.SetNonblock(fds[0], true)
	return os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket"), nil
}

// Ask has the child carry out a request and reads its answer, within Conn's deadline. Both
// are one line of JSON: paths in them are []byte, since they need not be UTF-8.
// After an error the child is asked no more, and each call gives that error:
// os.ErrDeadlineExceeded, another error of the socket, or the first line of what came instead
// of an answer. If the child's file 2 is the socket, that line says why it crashed.
func (c *Child) Ask(request, answer any) error {
	if c.bad == nil {
		c.bad = c.ask(request, answer)
	}
	return c.bad
}

func (c *Child) ask(request, answer any) error {
	if err := json.NewEncoder(c.Conn).Encode(request); err != nil {
		return fmt.Errorf("helper process: %w", err)
	}
	line, err := c.answers.ReadSlice('\n')
	var socket *fs.PathError
	if errors.As(err, &socket) {
		return fmt.Errorf("helper process: %w", err)
	}
	if json.Unmarshal(line, answer) != nil {
		return fmt.Errorf("helper process ended without an answer: %q", bytes.TrimSuffix(line, []byte("\n")))
	}
	return nil
}

// GiveUp ends the request that is under way: SIGTERM tells the child to answer what it can.
// Ask waits for that answer, but no longer than grace.
func (c *Child) GiveUp(grace time.Duration) {
	c.Process.Signal(unix.SIGTERM)
	c.Conn.SetDeadline(time.Now().Add(grace))
}

// Leave ends the conversation and does not wait for a file system. It kills a child that
// answers no more; the child ends when the kernel lets it.
func (c *Child) Leave() {
	if c.bad != nil {
		c.Process.Kill()
	}
	c.End()
	c.reap()
}

// End shuts the socket down, whoever has copies of it. An idle helper ends then.
func (c *Child) End() {
	if raw, err := c.Conn.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	}
	c.Conn.Close()
}

// reap waits a moment for a process that ends now. Whoever inherits a child of ours, the
// first process of a container, may not wait for it, and it would stay a zombie.
func (c *Child) reap() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Process.Wait()
	}()
	select {
	case <-done:
	case <-time.After(100 * time.Millisecond): // it hangs, or the machine is busy
	}
}

// Serve is all that a started program does: it says that it is there, then carries out
// one request after the other, until its starter ends the socket or is gone. do may hang for
// good: the starter has a deadline.
func Serve[Request, Answer any](conn io.ReadWriter, do func(Request) Answer) error {
	if _, err := conn.Write([]byte{1}); err != nil {
		return err
	}
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var r Request
		if err := in.Decode(&r); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := out.Encode(do(r)); err != nil {
			return err
		}
	}
}
