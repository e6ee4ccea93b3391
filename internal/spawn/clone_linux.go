//go:build linux && (amd64 || arm64)

package spawn

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is one system call of the child. The assembly knows its layout.
type call struct{ nr, a0, a1, a2, a3 uintptr }

// lastCall ends a table. The result of the call before it, as an errno, becomes the child's
// exit code.
const lastCall = ^uintptr(0)

// table is what a child does, and all that it refers to. Constant once made.
type table struct {
	calls []call
	path  *byte
	argv  []*byte // nil at its end
	envv  []*byte
	mask  uint64    // the caller's signal mask
	deflt sigaction // SIG_DFL
}

// sigaction is the kernel's struct sigaction; its size without the mask differs, its
// first word does not.
type sigaction struct{ handler, flags, restorer, mask uintptr }

func cloneRun(flags uintptr, calls *call) (pid uintptr)

// newTable makes the table of a program whose files 0, 1, ... are copies of fds. Each fd is
// greater than any number that a copy gets.
func newTable(argv []string, fds []int) (*table, error) {
	t := &table{envv: []*byte{nil}}
	for _, a := range argv {
		p, err := unix.BytePtrFromString(a)
		if err != nil {
			return nil, err
		}
		t.argv = append(t.argv, p)
	}
	t.path, t.argv = t.argv[0], append(t.argv, nil)
	for i, fd := range fds {
		t.add(unix.SYS_DUP3, uintptr(fd), uintptr(i), 0, 0)
	}
	// Close all other files now, not at exec: whoever waits for the end of a socket of ours
	// must not wait for a child that is held.
	t.add(unix.SYS_CLOSE_RANGE, uintptr(len(fds)), ^uintptr(0)>>32, 0, 0)
	t.add(unix.SYS_SETSID, 0, 0, 0, 0)
	for sig := uintptr(1); sig <= 64; sig++ {
		if handled(sig) {
			t.add(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&t.deflt)), 0, 8)
		}
	}
	t.add(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&t.mask)), 0, 8)
	t.add(unix.SYS_EXECVE, uintptr(unsafe.Pointer(t.path)), uintptr(unsafe.Pointer(&t.argv[0])), uintptr(unsafe.Pointer(&t.envv[0])), 0)
	t.add(lastCall, 0, 0, 0, 0)
	return t, nil
}

func (t *table) add(nr, a0, a1, a2, a3 uintptr) { t.calls = append(t.calls, call{nr, a0, a1, a2, a3}) }

// handled says whether a signal has a handler of ours, which the child must not run. A signal
// that is ignored stays ignored.
func handled(sig uintptr) bool {
	var old sigaction
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	const dfl, ign = 0, 1
	return errno == 0 && old.handler != dfl && old.handler != ign
}

// run makes the child. t must be kept until the child has executed its program.
//
//go:nosplit
//go:norace
func (t *table) run() (pid int, errno syscall.Errno) {
	all := ^uint64(0)
	// From here on no signal finds a handler in the child.
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&t.mask)), 8, 0, 0)
	r := cloneRun(unix.CLONE_VM|uintptr(unix.SIGCHLD), &t.calls[0])
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&t.mask)), 0, 8, 0, 0)
	if r > ^uintptr(4095) {
		return 0, syscall.Errno(-r)
	}
	return int(r), 0
}

// launch makes a process of argv with these files.
func launch(argv []string, files []*os.File) (*os.Process, *table, error) {
	const beyond = 16 // greater than the numbers that the child's files get
	var fds []int
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for _, f := range files {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, beyond)
		if err != nil {
			return nil, nil, os.NewSyscallError("fcntl", err)
		}
		fds = append(fds, fd)
	}
	t, err := newTable(argv, fds)
	if err != nil {
		return nil, nil, err
	}
	runtime.LockOSThread() // its signal mask is changed and restored
	pid, errno := t.run()
	runtime.UnlockOSThread()
	if errno != 0 {
		return nil, nil, os.NewSyscallError("clone", errno)
	}
	p, err := os.FindProcess(pid) // ours, and not waited for: the number is its
	return p, t, err
}
