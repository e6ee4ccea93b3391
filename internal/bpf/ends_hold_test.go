package bpf

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf/bpftest"
	"stackshot/kcdata"

	"github.com/cilium/ebpf"
)

// holdVar makes the test binary a process that holds the descriptors it was given, from 3
// on, until its input ends: "hold", "posix" (it takes a POSIX lock on descriptor 3) or
// "stat PATH".
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
	if order == "posix" {
		if err := unix.FcntlFlock(3, unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Len: 10}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println(unix.Gettid())
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// holder is such a process.
type holder struct {
	pid int
	tid int // of the thread that obeys the order
	in  io.Closer
	cmd *exec.Cmd
}

// hold starts a process that has files, the first as descriptor 3.
func hold(t testing.TB, order string, files ...*os.File) *holder {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), holdVar+"="+order)
	cmd.ExtraFiles = files
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
	found, err := p.Look(ends, threads, time.Now().Add(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if found.TimeUp || found.TooMany {
		t.Fatalf("time up %v, too many %v", found.TimeUp, found.TooMany)
	}
	return found
}
