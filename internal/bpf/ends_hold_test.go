package bpf

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf/bpftest"
	"stackshot/kcdata"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// holdVar makes the test binary a process that holds the descriptors it was given, from 3
// on, until its input ends: "hold", "posix" (it takes a POSIX lock on descriptor 3), "quiet"
// (it has no handlers for signals), "sockets N" (it opens that many pairs), "stat PATH" or
// "crowd PATH" (by descriptor 3, a unix socket, it sends there until there is no room).
const holdVar = "STACKSHOT_HOLD_FILES"

func init() {
	order, ok := os.LookupEnv(holdVar)
	if !ok {
		return
	}
	runtime.LockOSThread()
	if path, ok := strings.CutPrefix(order, "stat "); ok {
		fmt.Println(unix.Gettid())
		var st unix.Stat_t
		unix.Stat(path, &st)
		os.Exit(0)
	}
	if path, ok := strings.CutPrefix(order, "crowd "); ok {
		fmt.Println(unix.Gettid())
		crowd(3, &unix.SockaddrUnix{Name: path})
	}
	if order == "posix" {
		if err := unix.FcntlFlock(3, unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Len: 10}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	if n := 0; strings.HasPrefix(order, "sockets ") {
		fmt.Sscan(order[8:], &n)
		for range n {
			if _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
	}
	if order == "quiet" {
		defaultSignals()
	}
	fmt.Println(unix.Gettid())
	for b := make([]byte, 16); ; {
		if n, err := unix.Read(0, b); n <= 0 && err != unix.EINTR {
			os.Exit(0)
		}
	}
}

// crowd connects, or sends datagrams, until that fails.
func crowd(fd int, to unix.Sockaddr) {
	sort, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	for err == nil {
		if err = unix.EINVAL; sort == unix.SOCK_DGRAM {
			err = unix.Sendto(fd, []byte("hello"), 0, to)
		} else {
			unix.Connect(fd, to)
		}
	}
	os.Exit(0)
}

// defaultSignals takes the handlers away that the Go runtime has set.
func defaultSignals() {
	var none [64]byte // struct sigaction, whatever its size
	for signal := uintptr(1); signal <= 64; signal++ {
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, signal, uintptr(unsafe.Pointer(&none)), 0, 8, 0, 0)
	}
}

// holder is such a process.
type holder struct {
	pid int
	tid int // of the thread that obeys the order
	in  io.WriteCloser
	cmd *exec.Cmd
}

// hold starts a process that has files, the first as descriptor 3.
func hold(t testing.TB, order string, files ...*os.File) *holder {
	t.Helper()
	return holdWith(t, nil, order, files...)
}

func holdWith(t testing.TB, attr *syscall.SysProcAttr, order string, files ...*os.File) *holder {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), holdVar+"="+order)
	cmd.ExtraFiles, cmd.SysProcAttr = files, attr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &holder{pid: cmd.Process.Pid, in: in, cmd: cmd}
	t.Cleanup(h.end)
	line, err := bufio.NewReader(said).ReadString('\n')
	if _, e := fmt.Sscan(line, &h.tid); e != nil {
		t.Fatalf("holder said %q, %v", line, err)
	}
	return h
}

// end ends it; a second call does nothing.
func (h *holder) end() {
	h.in.Close()
	if h.cmd.ProcessState == nil {
		h.cmd.Wait()
	}
}

// file makes a descriptor a file that is closed at the test's end.
func file(t testing.TB, fd int, err error) *os.File {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), fmt.Sprint("fd ", fd))
	t.Cleanup(func() { f.Close() })
	return f
}

// lister gives what a process has open, as the pass sees it: addresses of the kernel are
// nowhere else to be had.
type lister struct {
	coll *ebpf.Collection
}

func newLister(t testing.TB) *lister {
	t.Helper()
	spec, err := bpftest.LoadEnds()
	if err != nil {
		t.Fatal(err)
	}
	delete(spec.Programs, endsObjectProgLookAtFiles)
	delete(spec.Programs, endsObjectProgLookAtThreads)
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(coll.Close)
	return &lister{coll}
}

// of is by descriptor.
func (l *lister) of(t testing.TB, pid int) map[int32]kcdata.LinuxEnd {
	t.Helper()
	var it Iterator
	scope := TaskScope(uint32(pid))
	if errno := it.Open(l.coll.Programs["list_files"].FD(), &scope); errno != 0 {
		t.Fatal(errno)
	}
	defer it.Close()
	var found foundParts
	buf := make([]byte, 64<<10)
	for {
		n, errno := it.Read(buf)
		if errno != 0 {
			t.Fatal(errno)
		}
		if n == 0 {
			break
		}
		if err := found.parse(buf[:n]); err != nil {
			t.Fatal(err)
		}
	}
	out := map[int32]kcdata.LinuxEnd{}
	for _, e := range found.ends {
		out[e.End.Fd] = e.End
	}
	return out
}

// fd is one of our own.
func (l *lister) fd(t testing.TB, f *os.File) kcdata.LinuxEnd {
	t.Helper()
	e, ok := l.of(t, os.Getpid())[int32(f.Fd())]
	if !ok {
		t.Fatalf("descriptor %d was not listed", f.Fd())
	}
	return e
}

// wants is what a thread that waits at this file would ask for.
func wants(e kcdata.LinuxEnd) WantedEnd {
	return WantedEnd{
		Kind: e.Kind, Object: e.Object, Peer: e.Peer, File: e.File, Inode: e.Inode, Dev: e.Dev, Family: e.Family, Sort: e.Sort,
		NetNS: e.NetNS, LocalPort: e.Port, PeerPort: e.PeerPort, Local: e.Local, Remote: e.Remote,
	}
}

func newPass(t testing.TB) *EndPass {
	t.Helper()
	p, err := OpenEndPass(EndPassOptions{})
	mustLoad(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// look gives what one pass finds, in time.
func lookFor(t testing.TB, p *EndPass, ends []WantedEnd, threads ...WantedThread) *FoundEnds {
	t.Helper()
	found := lookForAll(t, p, ends, threads...)
	// All servers of FUSE are found, whoever wants them: those of other tests, too.
	found.Ends = slices.DeleteFunc(found.Ends, func(e kcdata.LinuxEnd) bool { return e.Kind == kcdata.FileFUSE })
	return found
}

// lookForAll is lookFor with the servers of FUSE.
func lookForAll(t testing.TB, p *EndPass, ends []WantedEnd, threads ...WantedThread) *FoundEnds {
	t.Helper()
	found, err := p.Look(ends, threads, time.Now().Add(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if found.TimeUp || found.TooMany {
		t.Fatalf("time up %v, too many %v", found.TimeUp, found.TooMany)
	}
	return found
}

// loopbackUp: the loopback device of a guest is down at first.
func loopbackUp(t testing.TB) {
	t.Helper()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, lo); err != nil {
		t.Fatal(err)
	}
	if flags := lo.Uint16(); flags&unix.IFF_UP == 0 {
		lo.SetUint16(flags | unix.IFF_UP)
		if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
			t.Fatal(err)
		}
	}
}

func splitLines(s string) []string { return strings.Split(s, "\n") }

// hasOwner: the kernel knows whose memory it is (CONFIG_MEMCG).
func hasOwner(t testing.TB) bool { return kernelHas(t, "mm_struct", "owner") }

func fuseKnown(t testing.TB) bool {
	known, err := KnownEndTypes()
	if err != nil {
		t.Fatal(err)
	}
	return known.FUSE
}

// kernelHas looks for a field, in structs within the struct, too.
func kernelHas(t testing.TB, name, field string) bool {
	t.Helper()
	types, err := btf.LoadKernelSpec()
	if err != nil {
		t.Fatal(err)
	}
	var s *btf.Struct
	if err := types.TypeByName(name, &s); err != nil {
		t.Fatal(err)
	}
	return hasMember(s.Members, field)
}

func hasMember(members []btf.Member, field string) bool {
	return slices.ContainsFunc(members, func(m btf.Member) bool {
		if m.Name == "" {
			switch inner := btf.UnderlyingType(m.Type).(type) {
			case *btf.Struct:
				return hasMember(inner.Members, field)
			case *btf.Union:
				return hasMember(inner.Members, field)
			}
		}
		return m.Name == field
	})
}

// deviceOfMount is what mountinfo says: to ask the file system would wait for its server.
func deviceOfMount(t testing.TB, dir string) uint64 {
	t.Helper()
	b, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range splitLines(string(b)) {
		f := strings.Fields(line)
		var major, minor uint64
		if len(f) > 4 && f[4] == dir {
			if _, err := fmt.Sscanf(f[2], "%d:%d", &major, &minor); err != nil {
				t.Fatal(err)
			}
			return major<<32 | minor
		}
	}
	t.Fatalf("%s is no mount point", dir)
	return 0
}
