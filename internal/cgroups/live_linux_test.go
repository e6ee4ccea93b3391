package cgroups

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/capture"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

const eaterVar = "STACKSHOT_TEST_EATS"

// TestMain is the test, or a process that enters a group, uses 16 MiB of memory there and sleeps.
func TestMain(m *testing.M) {
	dir := os.Getenv(eaterVar)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := os.WriteFile(dir+"/cgroup.procs", []byte("0"), 0); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	b := make([]byte, eaten)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	fmt.Println("full")
	time.Sleep(time.Hour)
	fmt.Println(b[0])
}

const (
	eaten   = 16 << 20
	allowed = 64 << 20
)

// tree is a group with a limit and a group in it, in the hierarchy of the memory controller.
type tree struct {
	version      int
	root         string // where the hierarchy is mounted
	path         string // of the upper group
	upper, lower string // their directories
	limit        string // name of a file
	pid          int    // of a process in the lower one
}

// grow makes the groups, and a process in the lower one that uses memory.
func grow(t *testing.T) *tree {
	t.Helper()
	testneed.Root(t)
	where, err := findPlaces(procfs.FS{})
	if err != nil {
		t.Fatal(err)
	}
	g := &tree{path: fmt.Sprintf("/stackshot-cgroups-%d", os.Getpid())}
	switch {
	case len(where[1]) > 0:
		g.version, g.root, g.limit = 1, where.dir(1, "/"), "memory.limit_in_bytes"
	case len(where[2]) > 0:
		g.version, g.root, g.limit = 2, where.dir(2, "/"), "memory.max"
		if err := os.WriteFile(g.root+"/cgroup.subtree_control", []byte("+memory"), 0); err != nil {
			t.Skipf("no memory controller for groups of a test's own: %v", err)
		}
	default:
		t.Skip("no hierarchy with a memory controller is mounted")
	}
	g.upper, g.lower = g.root+g.path, g.root+g.path+"/in"
	t.Cleanup(func() { os.Remove(g.lower); os.Remove(g.upper) })
	if err := os.MkdirAll(g.lower, 0o755); err != nil {
		t.Skipf("no group of a test's own: %v", err)
	}
	if err := os.WriteFile(filepath.Join(g.upper, g.limit), fmt.Append(nil, allowed), 0); err != nil {
		t.Fatal(err)
	}
	if g.version == 2 {
		if err := os.WriteFile(g.upper+"/cgroup.subtree_control", []byte("+memory"), 0); err != nil {
			t.Fatal(err)
		}
	}
	g.eat(t)
	return g
}

// eat starts the process, and waits until it has its memory.
func (g *tree) eat(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), eaterVar+"="+g.lower)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	said := make([]byte, 100)
	if n, err := out.Read(said); err != nil || string(said[:n]) != "full\n" {
		t.Fatalf("%q, %v", said[:n], err)
	}
	g.pid = cmd.Process.Pid
}

func (g *tree) look(t *testing.T) *capture.Cgroups {
	t.Helper()
	readers := procfs.NewReaders(4, 5*time.Second)
	t.Cleanup(readers.Close)
	l := &Looker{Proc: procfs.FS{Readers: readers}, Budget: 30 * time.Second, Most: MostGroups}
	return l.Look([]Member{{g.pid, 3}, {os.Getpid(), 1}, {1 << 30, 1}})
}

func find(c *capture.Cgroups, path string) *capture.Cgroup {
	for i := range c.Groups {
		if c.Groups[i].Path == path {
			return &c.Groups[i]
		}
	}
	return nil
}

// What is read of real groups is what their files say: the group of a process, and the one above it that
// has the limit.
func TestRealGroups(t *testing.T) {
	testneed.Live(t)
	g := grow(t)
	c := g.look(t)
	lower, upper := find(c, g.path+"/in"), find(c, g.path)
	if lower == nil || upper == nil {
		t.Fatalf("%s", strings.Join(brief(c), "\n"))
	}
	if lower.Tasks != 1 || lower.Threads != 3 || upper.Tasks != 0 || upper.Flags != kcdata.CgroupAbove || c.Groups[lower.Parent].Path != g.path {
		t.Errorf("%s", strings.Join(brief(c), "\n"))
	}
	if int(c.Taken.Version) != g.version || c.Taken.Unknown != 0 || c.Taken.Flags&^kcdata.CgroupsNoPressure != 0 {
		t.Errorf("%+v", c.Taken)
	}
	for _, r := range []struct {
		dir string
		*capture.Cgroup
	}{{g.lower, lower}, {g.upper, upper}} {
		g.compare(t, r.dir, r.Cgroup)
	}
	if upper.Max != allowed || upper.Current < eaten || upper.Current > allowed || lower.Max != kcdata.CgroupUnlimited {
		t.Errorf("%+v\n%+v", upper, lower)
	}
}

// compare reads each file once more. All but the use and pressure of memory stand still.
func (g *tree) compare(t *testing.T, dir string, r *capture.Cgroup) {
	t.Helper()
	for name, v := range map[int]map[string]struct {
		bit   uint32
		value uint64
	}{
		1: {
			"memory.limit_in_bytes": {kcdata.CgroupHasMax, r.Max}, "memory.soft_limit_in_bytes": {kcdata.CgroupHasSoft, r.Soft},
			"memory.failcnt": {kcdata.CgroupHasFails, r.MaxEvents}, "memory.memsw.limit_in_bytes": {kcdata.CgroupHasSwapMax, r.SwapMax},
			"memory.oom_control oom_kill": {kcdata.CgroupHasOOMKill, r.OOMKill}, "memory.oom_control under_oom": {kcdata.CgroupHasOOM, uint64(r.Flags & kcdata.CgroupUnderOOM)},
		},
		2: {
			"memory.max": {kcdata.CgroupHasMax, r.Max}, "memory.high": {kcdata.CgroupHasHigh, r.High}, "memory.swap.max": {kcdata.CgroupHasSwapMax, r.SwapMax},
			"memory.events max": {kcdata.CgroupHasEvents, r.MaxEvents}, "memory.events high": {kcdata.CgroupHasEvents, r.HighEvents},
			"memory.events oom_kill": {kcdata.CgroupHasOOMKill, r.OOMKill}, "memory.swap.current": {kcdata.CgroupHasSwap, r.Swap},
		},
	}[g.version] {
		file, key, _ := strings.Cut(name, " ")
		text, err := os.ReadFile(filepath.Join(dir, file))
		if has := r.Present&v.bit != 0; has != (err == nil) {
			t.Errorf("%s/%s: present %v, and %v", dir, name, has, err)
		}
		if want := fmt.Sprint(v.value); err == nil && witness(string(text), key) != want {
			t.Errorf("%s/%s: %q, and the record has %s", dir, name, text, want)
		}
	}
	if _, err := os.Stat(dir + "/memory.pressure"); (err == nil) != (r.Present&kcdata.CgroupHasPressure != 0) {
		t.Errorf("%s: pressure %v, present %#x", dir, err, r.Present)
	}
	if st, err := os.Stat(dir); err != nil || !strings.Contains(fmt.Sprintf("%+v", st.Sys()), fmt.Sprintf("Ino:%d ", r.ID)) {
		t.Errorf("%s: inode %d is not that of %+v, %v", dir, r.ID, st, err)
	}
}

// witness reads a value in another way than the parsers: by words.
func witness(text, key string) string {
	words := strings.Fields(text)
	for i := 1; key != "" && i < len(words); i += 2 {
		if words[i-1] == key {
			return words[i]
		}
	}
	switch {
	case key != "" || len(words) != 1:
		return ""
	case words[0] == "max" || len(words[0]) == 19 && strings.HasPrefix(words[0], "92233720368547"):
		return fmt.Sprint(uint64(kcdata.CgroupUnlimited))
	}
	return words[0]
}

// A group that is removed while it is read is gone, whatever was read of it before.
func TestRemovedMeanwhile(t *testing.T) {
	testneed.Live(t)
	g := grow(t)
	readers := procfs.NewReaders(2, 5*time.Second)
	defer readers.Close()
	files := readable(filesOf[uint16(g.version)])
	empty := g.upper + "/empty"
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(empty)
	readers.Read(empty, files)
	whole := newGroup(key{uint16(g.version), "/x"})
	if whole.fill(filesOf[uint16(g.version)], files); whole.Outcome != kcdata.CgroupRead || whole.Present&kcdata.CgroupHasMax == 0 {
		t.Errorf("%+v", whole.LinuxCgroup)
	}
	if err := os.Remove(empty); err != nil {
		t.Fatal(err)
	}
	last := files[len(files)-1:]
	readers.Read(empty, last)
	files[len(files)-1] = last[0]
	gone := newGroup(key{uint16(g.version), "/x"})
	if gone.fill(filesOf[uint16(g.version)], files); gone.Outcome != kcdata.CgroupGone || gone.Max != whole.Max {
		t.Errorf("%+v", gone.LinuxCgroup)
	}
}

// A group whose directory this user may not enter is said to be so.
func TestDenied(t *testing.T) {
	testneed.Live(t)
	g := grow(t)
	if err := os.Chmod(g.lower, 0o700); err != nil {
		t.Fatal(err)
	}
	where, err := findPlaces(procfs.FS{})
	if err != nil {
		t.Fatal(err)
	}
	of := newGroup(key{uint16(g.version), g.path + "/in"})
	s := &look{Looker: &Looker{}}
	r := groupReader{look: s, where: where, files: map[uint16][]procfs.File{of.Version: readable(filesOf[of.Version])}}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock it: the thread ends with this goroutine
		_, err := unix.SetfsuidRetUid(65534)
		r.group(of)
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if of.Outcome != kcdata.CgroupDenied || of.Errno != uint32(unix.EACCES) || of.Present&kcdata.CgroupHasMax != 0 {
		t.Errorf("%+v", of.LinuxCgroup)
	}
}
