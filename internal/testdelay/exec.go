//go:build linux

package testdelay

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// execWord as the first argument makes a test binary the command behind it, whose
// own execs are held back.
const execWord = "__hold_exec"

// A Hold keeps each execve of a command, and of what it starts, from going on: its
// children are stopped between clone and exec.
type Hold struct {
	tb   testing.TB
	sock int           // the filter's listener comes by it
	over chan struct{} // closed at the end
	done chan struct{} // closed when nobody listens any more

	mu   sync.Mutex
	held []notification // by mu
}

// HoldExec bends a command that is yet to be started. Its TestMain calls MaybeExec.
func HoldExec(tb testing.TB, cmd *exec.Cmd) *Hold {
	tb.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "socket")
	h := &Hold{tb: tb, sock: fds[0], over: make(chan struct{}), done: make(chan struct{})}
	cmd.Args = append([]string{cmd.Args[0], execWord, cmd.Path}, cmd.Args...)
	cmd.Path, cmd.ExtraFiles = "/proc/self/exe", []*os.File{theirs}
	go h.listen()
	tb.Cleanup(func() {
		theirs.Close()
		h.release()
		unix.Close(h.sock)
	})
	return h
}

// MaybeExec becomes the command of HoldExec, and does nothing in a test.
func MaybeExec() {
	if len(os.Args) < 4 || os.Args[1] != execWord {
		return
	}
	const sock = 3
	runtime.LockOSThread() // the filter is this thread's, which executes
	unix.CloseOnExec(sock)
	fd, err := filter(unix.SYS_EXECVE, 0)
	if err == nil {
		err = unix.Sendmsg(sock, []byte{1}, unix.UnixRights(fd), nil, 0)
	}
	if err == nil {
		err = syscall.Exec(os.Args[2], os.Args[3:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "testdelay:", err)
	unix.Exit(1)
}

// Held is how many execs have been held back.
func (h *Hold) Held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held)
}

// Left lets everything go on and gives those held processes that live on, pid and
// name, after the moment that they may need to end.
func (h *Hold) Left() (left []string) {
	h.release()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left = nil
		for _, n := range h.held {
			if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", n.Pid)); err == nil {
				left = append(left, fmt.Sprintf("%d %s", n.Pid, comm))
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return slices.Compact(left)
		}
	}
}

func (h *Hold) release() {
	h.mu.Lock()
	select {
	case <-h.over:
	default:
		close(h.over)
		unix.Shutdown(h.sock, unix.SHUT_RDWR)
	}
	h.mu.Unlock()
	<-h.done
}

// listen lets the first call go on, which makes the command, and holds the others
// until the end.
func (h *Hold) listen() {
	defer close(h.done)
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(h.sock, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return
	}
	messages, _ := unix.ParseSocketControlMessage(control[:n])
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return
	}
	l := &listener{fd: fds[0]}
	defer unix.Close(l.fd)
	for first := true; ; {
		select {
		case <-h.over:
			for _, n := range h.held {
				l.goOn(&n)
			}
			return
		default:
		}
		poll := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
		if n, _ := unix.Poll(poll, 20); n == 0 || poll[0].Revents&unix.POLLIN == 0 {
			time.Sleep(time.Millisecond) // of one that hung up, until the end
			continue
		}
		var n notification
		if !l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) {
			continue
		}
		if first {
			first = false
			l.goOn(&n)
			continue
		}
		h.mu.Lock()
		h.held = append(h.held, n)
		h.mu.Unlock()
	}
}

func (l *listener) goOn(n *notification) {
	l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&response{ID: n.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}))
}
