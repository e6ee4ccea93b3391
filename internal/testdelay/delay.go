//go:build linux

// Package testdelay has the processes that read other people's files for a test
// answer late: a system call of theirs is held back in the kernel, by a seccomp
// filter whose listener is the process itself, as a slow disk would hold it. And it
// holds back the execs of a command, whose helpers then do not begin.
package testdelay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// word as the first argument makes a test binary such a process.
const word = "__read_late"

// A Call is what is late.
type Call struct {
	Name  string        // "openat2" or "pread64"
	Path  string        // of files whose path has this in it; "": of any
	By    time.Duration // how late
	After int           // so many calls are in time first
	Times int           // how often, over all processes
}

var numbers = map[string]uint32{"openat2": unix.SYS_OPENAT2, "pread64": unix.SYS_PREAD64}

// A Reader is a command line of this test binary, and what is left to be late.
type Reader struct {
	Command []string
	dir     string // a file for each call that has yet to be in time or late
}

const inTime, late = " in time", " late"

// New makes one. The test's TestMain calls MaybeServe.
func New(tb testing.TB, c Call) *Reader {
	tb.Helper()
	if _, known := numbers[c.Name]; !known {
		tb.Fatalf("testdelay: %q", c.Name)
	}
	dir := tb.TempDir()
	for i := range c.After + c.Times {
		kind := inTime
		if i >= c.After {
			kind = late
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%09d%s", i, kind)), nil, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return &Reader{[]string{"/proc/self/exe", word, c.Name, c.Path, c.By.String(), dir}, dir}
}

// Left is how many calls it has yet to be late for.
func (r *Reader) Left(tb testing.TB) int {
	tb.Helper()
	left, err := filepath.Glob(filepath.Join(r.dir, "*"+late))
	if err != nil {
		tb.Fatal(err)
	}
	return len(left)
}

// MaybeServe is a reader process's whole life, and does nothing in a test.
func MaybeServe(serve func() error) {
	if len(os.Args) != 6 || os.Args[1] != word {
		return
	}
	by, err := time.ParseDuration(os.Args[4])
	l := &listener{path: os.Args[3], dir: os.Args[5], by: by}
	if err == nil {
		l.fd, err = filter(numbers[os.Args[2]], unix.SECCOMP_FILTER_FLAG_TSYNC|unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH)
	}
	if err == nil {
		go l.listen()
		err = serve()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testdelay:", err)
		unix.Exit(1)
	}
	unix.Exit(0) // os.Exit would sleep for a second under the race detector
}

// filter has each call of that number wait for the listener: of this thread, and by
// TSYNC of all. Who gives up set-uid programs needs no rights for that.
func filter(nr uint32, tsync uintptr) (fd int, err error) {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("no_new_privs: %w", err)
	}
	flags := unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | tsync
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return int(r), nil
}

// notification and response are struct seccomp_notif and seccomp_notif_resp
// (include/uapi/linux/seccomp.h).
type notification struct {
	ID         uint64
	Pid, Flags uint32
	Nr         int32
	Arch       uint32
	IP         uint64
	Args       [6]uint64
}

type response struct {
	ID    uint64
	Val   int64
	Errno int32
	Flags uint32
}

type listener struct {
	fd        int
	path, dir string
	by        time.Duration
}

// listen lets every call go on, the late ones late.
func (l *listener) listen() {
	for {
		var n notification
		if !l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) {
			continue // interrupted, or the caller is gone
		}
		if strings.Contains(pathOf(&n), l.path) && l.take() {
			time.Sleep(l.by)
		}
		l.goOn(&n)
	}
}

func (l *listener) ioctl(request uintptr, arg unsafe.Pointer) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), request, uintptr(arg))
	return errno == 0
}

// take takes the next of those that are left, and says whether it is to be late.
func (l *listener) take() bool {
	for {
		left, _ := os.ReadDir(l.dir) // sorted
		if len(left) == 0 {
			return false
		}
		if name := left[0].Name(); os.Remove(filepath.Join(l.dir, name)) == nil { // else another process has it
			return strings.HasSuffix(name, late)
		}
	}
}

// pathOf is the file that a call is about.
func pathOf(n *notification) string {
	if n.Nr == unix.SYS_PREAD64 {
		path, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", n.Args[0]))
		return path
	}
	for size := 4096; size > 0; size /= 2 { // to the end of its mapping, at most
		b := make([]byte, size)
		local := []unix.Iovec{{Base: &b[0], Len: uint64(size)}}
		k, err := unix.ProcessVMReadv(os.Getpid(), local, []unix.RemoteIovec{{Base: uintptr(n.Args[1]), Len: size}}, 0)
		if err == nil {
			return unix.ByteSliceToString(b[:k])
		}
	}
	return ""
}
