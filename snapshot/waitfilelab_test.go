//go:build linux

package snapshot

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// fileWait is a thread of this process in a call with descriptors, and what is to be
// recorded of it.
type fileWait struct {
	name  string
	call  [7]uintptr
	want  []wantFile
	files uint32 // descriptors in the call; 0: as many as are wanted
	wake  func()
	tid   int
	ended chan unix.Errno
}

// wantFile is one descriptor. All else is what fstat, fcntl, getsockname and their kin say.
type wantFile struct {
	fd              int
	op, kind, flags uint32
	bytes           uint64
	socket          kcdata.LinuxSocket // flags, backlog
	how             uint32
	start, length   uint64
	events          uint32
}

// fileLab makes descriptors that are closed with the test.
type fileLab struct {
	t    *testing.T
	dir  string
	list []*fileWait
	gone []byte // of a set
}

func (l *fileLab) ok(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *fileLab) add(name string, wake func(), want []wantFile, nr int, args ...uintptr) *fileWait {
	w := &fileWait{name: name, want: want, wake: wake}
	w.call[0] = uintptr(nr)
	copy(w.call[1:], args)
	l.list = append(l.list, w)
	return w
}

// sleep begins the call on a thread of its own. False: the kernel has no such call.
func (l *fileLab) sleep(w *fileWait) bool {
	l.t.Helper()
	tid := make(chan int)
	w.ended = make(chan unix.Errno, 1)
	go func() {
		runtime.LockOSThread()
		tid <- unix.Gettid()
		_, _, e := unix.Syscall6(w.call[0], w.call[1], w.call[2], w.call[3], w.call[4], w.call[5], w.call[6])
		w.ended <- e
	}()
	w.tid = <-tid
	err := testtask.WaitFor(slow(5*time.Second), func() (bool, error) {
		select {
		case e := <-w.ended:
			w.ended <- e
			return false, e
		default:
		}
		return sleepsIn(w.tid, int(w.call[0])), nil
	})
	if err == unix.ENOSYS {
		return false
	}
	if err != nil {
		l.t.Fatalf("%s: %v", w.name, err)
	}
	return true
}

// end wakes all threads.
func (l *fileLab) end() {
	for _, w := range l.list {
		if w.ended == nil { // it never slept
			continue
		}
		if w.wake != nil {
			w.wake()
		}
		select {
		case <-w.ended:
		case <-time.After(slow(5 * time.Second)):
			l.t.Errorf("%s: still waits", w.name)
		}
	}
}

func (l *fileLab) fd(fd int, err error) int {
	l.t.Helper()
	l.ok(err)
	l.t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func (l *fileLab) pipe() (r, w int) {
	l.t.Helper()
	var p [2]int
	l.ok(unix.Pipe2(p[:], unix.O_CLOEXEC))
	return l.fd(p[0], nil), l.fd(p[1], nil)
}

func (l *fileLab) pair(domain, typ int) (a, b int) {
	l.t.Helper()
	p, err := unix.Socketpair(domain, typ|unix.SOCK_CLOEXEC, 0)
	l.ok(err)
	return l.fd(p[0], nil), l.fd(p[1], nil)
}

func (l *fileLab) socket(domain, typ int) int {
	l.t.Helper()
	return l.fd(unix.Socket(domain, typ|unix.SOCK_CLOEXEC, 0))
}

// loopbackUp: in a guest nobody has done it.
func (l *fileLab) loopbackUp() {
	l.t.Helper()
	s := l.socket(unix.AF_INET, unix.SOCK_DGRAM)
	lo, err := unix.NewIfreq("lo")
	l.ok(err)
	l.ok(unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, lo))
	if lo.Uint16()&unix.IFF_UP == 0 {
		lo.SetUint16(lo.Uint16() | unix.IFF_UP)
		l.ok(unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo))
	}
}

// loopback is a connection of TCP: the accepted side, the connecting one, and who listens.
func (l *fileLab) loopback(listen, connect int, addr, to func(port int) unix.Sockaddr) (server, client, listener int) {
	l.t.Helper()
	listener, client = l.socket(listen, unix.SOCK_STREAM), l.socket(connect, unix.SOCK_STREAM)
	l.ok(unix.Bind(listener, addr(0)))
	l.ok(unix.Listen(listener, 5))
	l.ok(unix.Connect(client, to(portOf(l.t, listener))))
	server, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
	return l.fd(server, err), client, listener
}

func portOf(t *testing.T, fd int) int {
	t.Helper()
	sa, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return a.Port
	case *unix.SockaddrInet6:
		return a.Port
	}
	return 0
}

func inet4(port int) unix.Sockaddr {
	return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
}

func inet6(port int) unix.Sockaddr {
	return &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}
}

func any6(port int) unix.Sockaddr { return &unix.SockaddrInet6{Port: port} }

func write(fd int) func() { return func() { unix.Write(fd, []byte("12345678")) } }

// fillUp writes until the descriptor takes no more.
func fillUp(fd int) {
	unix.SetNonblock(fd, true)
	for size := 4096; size > 0; size /= 2 {
		for {
			if _, err := unix.Write(fd, make([]byte, size)); err != nil {
				break
			}
		}
	}
	unix.SetNonblock(fd, false)
}

// drain reads until nothing is left.
func drain(fd int) func() {
	return func() {
		unix.SetNonblock(fd, true)
		for range 100 {
			if n, _ := unix.Read(fd, make([]byte, 1<<20)); n <= 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// shut ends what a thread does with a socket.
func shut(fd int) func() { return func() { unix.Shutdown(fd, unix.SHUT_RDWR) } }

// kept memory is not the collector's: threads wait with pointers to it.
func (l *fileLab) kept(n int) ([]byte, uintptr) {
	mem := anonymous(l.t, n)
	return mem, uintptr(unsafe.Pointer(&mem[0]))
}

func (l *fileLab) path(name string) string { return filepath.Join(l.dir, name) }

func fdLink(fd int) string {
	s, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	return s
}
