package snapshot

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// Who waits for a FUSE server is joined to it in the file: the request that the server has not
// answered, the mount by the same device, and the server's descriptor by the same connection.
func TestEndsOfFUSE(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	needsShell(t)
	fs := userlab.NewStalledFS(t, userlab.StalledFile{Name: "file", Data: []byte("content"), Mode: 0o644, Direct: true})
	cmd := exec.Command("cat", fs.Path("file"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		fs.Release()
		cmd.Wait()
	})
	pid := cmd.Process.Pid
	// From the request to its sleep are some steps.
	for end := time.Now().Add(slow(10 * time.Second)); !fs.Stalls("file") || !strings.Contains("SD", stateOf(t, pid, pid)); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody waits for the file")
		}
	}
	for _, name := range []string{EngineTrap, EnginePull} {
		_, s, _ := takeWhole(t, Options{Engine: name}, Request{Pids: []int{pid}})
		th := threadsByID(s)[uint64(pid)]
		if len(th.Files) != 1 || th.Files[0].Op != kcdata.FileOpRead || th.Files[0].Flags&kcdata.FileStill == 0 {
			t.Errorf("%s: %+v", name, th.Files)
			continue
		}
		i := slices.IndexFunc(s.FUSE, func(r kcdata.LinuxFUSE) bool { return int(r.Tid) == pid })
		if i < 0 {
			t.Errorf("%s: no request of %d in %+v", name, pid, s.FUSE)
			continue
		}
		r := s.FUSE[i]
		if r.Dev != th.Files[0].Dev || r.Flags&kcdata.FUSESent == 0 {
			t.Errorf("%s: %+v, and the file %+v", name, r, th.Files[0])
		}
		if !slices.ContainsFunc(s.Mounts, func(m kcdata.LinuxMount) bool {
			point, _, _ := bytes.Cut(m.Point[:], []byte{0})
			return m.Dev == r.Dev && string(point) == fs.Dir && bytes.HasPrefix(m.FSType[:], []byte("fuse"))
		}) {
			t.Errorf("%s: no mount of %s", name, fs.Dir)
		}
		if !slices.ContainsFunc(s.Ends, func(e kcdata.LinuxEnd) bool {
			return e.Kind == kcdata.FileFUSE && e.Object == r.Conn && int(e.Tgid) == os.Getpid() && e.Flags&kcdata.EndServes != 0
		}) {
			t.Errorf("%s: no server of %#x in %+v", name, r.Conn, s.Ends)
		}
	}
}

// A file system that only another mount namespace shows is in the file, as a process sees it that waits there.
func TestEndsOfForeignMount(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	needsShell(t)
	testneed.Program(t, "unshare", "mount", "flock")
	dir := t.TempDir()
	var held [2]int // who has the lock reads from it, and ends with it
	if err := unix.Pipe2(held[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(held[1]) })
	cmd := exec.Command("unshare", "-m", "sh", "-c",
		`mount -t tmpfs named "$0" && exec 3<&0 && { flock "$0/f" cat <&3 & } && sleep 0.3 && exec flock "$0/f" true`, dir)
	end := os.NewFile(uintptr(held[0]), "end")
	defer end.Close()
	cmd.Stdin = end
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	pid := cmd.Process.Pid
	err := testtask.WaitFor(10*time.Second, func() (bool, error) {
		return strings.Contains(slurp(t, fmt.Sprintf("/proc/%d/stack", pid)), "flock"), nil
	})
	if err != nil {
		t.Fatalf("it does not wait for its lock: %v", err)
	}
	_, s, _ := takeWhole(t, Options{Engine: EnginePull}, Request{Pids: []int{pid}})
	var f kcdata.LinuxFile
	if th := threadsByID(s)[uint64(pid)]; len(th.Files) == 1 {
		f = th.Files[0]
	}
	i := slices.IndexFunc(s.Mounts, func(m kcdata.LinuxMount) bool { return m.Dev == f.Dev })
	if i < 0 {
		t.Fatalf("no mount of %+v", f)
	}
	m := &s.Mounts[i]
	text := func(b []byte) string { return string(bytes.TrimRight(b, "\x00")) }
	if m.Flags != kcdata.MountForeign || int(m.Tgid) != pid || m.NS == 0 || text(m.Point[:]) != dir || text(m.Source[:]) != "named" || text(m.FSType[:]) != "tmpfs" {
		t.Errorf("%+v, %q %q %q", *m, text(m.Point[:]), text(m.Source[:]), text(m.FSType[:]))
	}
}
