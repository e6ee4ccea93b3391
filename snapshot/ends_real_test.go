package snapshot

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// waitsAt starts a process whose standard input is fd, at which it waits.
func waitsAt(t *testing.T, fd int, command ...string) int {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	if fd >= 0 {
		f := os.NewFile(uintptr(fd), "end")
		defer f.Close()
		cmd.Stdin = f
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		stack := slurp(t, fmt.Sprintf("/proc/%d/stack", cmd.Process.Pid))
		if strings.Contains(stack, "pipe_read") || strings.Contains(stack, "unix_stream_read") || strings.Contains(stack, "tcp_recvmsg") || strings.Contains(stack, "flock") {
			return cmd.Process.Pid
		}
	}
	t.Fatalf("%q does not wait", command)
	return 0
}

// connected is a TCP connection to ourselves, both ends.
func connected(t *testing.T) (ours, theirs int) {
	t.Helper()
	var fds []int
	open := func(fd int, err error) int {
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
		return fd
	}
	listener := open(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	defer unix.Close(listener)
	if err := unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(listener, 1); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(listener)
	if err != nil {
		t.Fatal(err)
	}
	theirs = open(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	if err := unix.Connect(theirs, at); err != nil {
		t.Fatal(err)
	}
	ours, _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC)
	return open(ours, err), theirs
}

// waitingFor are processes that wait at a pipe, a unix socket, a loopback connection and a lock, the other
// end of each in this process; by kind of file.
func waitingFor(t *testing.T) map[int]uint32 {
	testneed.Program(t, "flock")
	needsShell(t)
	var pipe, pair [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := connected(t)
	t.Cleanup(func() {
		for _, fd := range []int{pipe[1], pair[1], ours} {
			unix.Close(fd)
		}
	})
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return map[int]uint32{
		waitsAt(t, pipe[0], "cat"): kcdata.FilePipe, waitsAt(t, pair[0], "cat"): kcdata.FileSocket, waitsAt(t, theirs, "cat"): kcdata.FileSocket,
		waitsAt(t, -1, "flock", path, "true"): kcdata.FileRegular,
	}
}

// Of real processes the file says at what they wait, that they still did after the release, and which
// descriptors of whom are the other ends. Redacted, it has the same without addresses and names.
func TestEndsOfRealProcesses(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	waiting := waitingFor(t)
	var pids []int
	for pid := range waiting {
		pids = append(pids, pid)
	}
	for _, o := range []Options{{Engine: EngineTrap}, {Engine: EnginePull}, {Engine: EngineTrap, Redact: true}} {
		res, s, _ := takeWhole(t, o, Request{Pids: pids})
		if res.Files == nil || s.FilesTaken == nil || *res.Files != *s.FilesTaken {
			t.Fatalf("%+v: sums %+v, %+v", o, res.Files, s.FilesTaken)
		}
		k := s.FilesTaken
		if want := uint32(kcdata.FilesHasTable | kcdata.FilesHasPass | kcdata.FilesHasLocks | kcdata.FilesHasMounts); k.Sources&want != want ||
			k.Flags != 0 || k.Threads != 4 || k.Files != 4 || k.Moved != 0 || k.Looked < 10 || k.DelayNs == 0 {
			t.Errorf("%+v: %+v", o, k)
		}
		for pid, kind := range waiting {
			th := threadsByID(s)[uint64(pid)]
			if len(th.Files) != 1 || th.Files[0].Kind != kind || th.Files[0].Flags&kcdata.FileStill == 0 || len(th.Sockets) == 1 != (kind == kcdata.FileSocket) {
				t.Errorf("%+v: %d: %+v", o, pid, th.Files)
				continue
			}
			f := th.Files[0]
			if !slices.ContainsFunc(s.Ends, func(e kcdata.LinuxEnd) bool {
				return e.Of == f.Object && int(e.Tgid) == os.Getpid() && (kind != kcdata.FileRegular || e.Flags&kcdata.EndLocks != 0)
			}) {
				t.Errorf("%+v: nobody has the other end of %+v", o, f)
			}
		}
		locked := func(l kcdata.LinuxFileLock) bool {
			return int(l.Tgid) == os.Getpid() && l.Kind == kcdata.FileLockFlock && l.Flags&kcdata.FileLockWaits == 0
		}
		if !slices.ContainsFunc(s.FileLocks, locked) || len(s.Mounts) == 0 || s.Mounts[0].FSType == [32]byte{} {
			t.Errorf("%+v: locks %+v", o, s.FileLocks)
		}
		redactedEnds(t, o.Redact, s)
	}
}

// redactedEnds: addresses, ports, paths and names are in the file just if it is not redacted.
func redactedEnds(t *testing.T, redacted bool, s *kcdata.Snapshot) {
	t.Helper()
	address, port, point, object := false, false, false, false
	for _, e := range s.Ends {
		address = address || e.Local != [16]byte{} || e.Remote != [16]byte{}
		port = port || e.Port != 0 || e.PeerPort != 0
		object = object || e.Object > 1<<40 || e.Peer > 1<<40 || e.Of > 1<<40 || e.File > 1<<40
	}
	for _, m := range s.Mounts {
		point = point || m.Point != [256]byte{} || m.Source != [128]byte{} || m.Root != [64]byte{}
	}
	if address == redacted || port == redacted || point == redacted || object == redacted || redacted && len(s.Devices) > 0 {
		t.Errorf("redacted %v: address %v, port %v, mount point %v, addresses of the kernel %v, %d devices", redacted, address, port, point, object, len(s.Devices))
	}
}
