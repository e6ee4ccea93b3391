package image

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"stackshot/internal/foreign"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// Where a file is looked for, in order.
func TestPlaces(t *testing.T) {
	self := fmt.Sprintf("/proc/%d", os.Getpid())
	inside, through, exe := self+"/root/lib/x", self+"/map_files/1000-2000", self+"/exe"
	for _, c := range []struct {
		what  string
		pid   int
		path  string
		flags uint32
		want  []string
	}{
		{"named", os.Getpid(), "/lib/x", 0, []string{inside, through, "/lib/x"}},
		{"its mmap_lock held", os.Getpid(), "/lib/x", kcdata.MappingInWindow, []string{inside, exe, "/lib/x"}},
		{"held, the end of a path", os.Getpid(), "…b/x", kcdata.MappingInWindow, []string{exe}},
		{"deleted", os.Getpid(), "/lib/x", kcdata.MappingDeleted, []string{through, exe}},
		{"no process", 0, "/lib/x", 0, []string{"/lib/x"}},
		{"no process, deleted", 0, "/lib/x", kcdata.MappingDeleted, nil},
	} {
		m := Mapped{Seen(c.pid), kcdata.Mapping{Path: c.path, LinuxMapping: kcdata.LinuxMapping{Start: 0x1000, End: 0x2000, Flags: c.flags}}}
		var got []string
		for _, p := range m.Places() {
			got = append(got, p.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// A process is the same by its start time; one of another machine never lives.
func TestAlive(t *testing.T) {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	st, err := procfs.ParseStat(b)
	if err != nil {
		t.Fatal(err)
	}
	start := st.StartBoottime()
	for _, c := range []struct {
		p    Process
		want error
	}{
		{Process{"/proc", uint64(os.Getpid()), start, false}, nil},
		{Process{"/proc", uint64(os.Getpid()), start + 30_000_000, false}, errAnother},
		{Process{"/proc", uint64(os.Getpid()), 0, false}, errNoStart},
		{Process{"/proc", 1 << 30, start, false}, ErrEnded},
		{Process{"", uint64(os.Getpid()), start, false}, errElsewhere},
	} {
		if err := c.p.Alive(); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.p, err, c.want)
		}
	}
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/7/stat", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := (Process{dir, 7, start, false}).Alive(); err == nil || errors.Is(err, ErrEnded) {
		t.Errorf("whose state cannot be read: %v", err)
	}
}

// Without a build-id and without a process to vouch for it, a file counts only
// if it was there before the process began, and never on another machine.
func TestWithoutBuildIDOrProcess(t *testing.T) {
	st := foreign.Stat{DevMajor: 1, DevMinor: 2, Inode: 3, Ctime: 100}
	m := kcdata.Mapping{LinuxMapping: kcdata.LinuxMapping{DevMajor: 1, DevMinor: 2, Inode: 3}}
	here := &Mapped{Process{Proc: "/proc"}, m}
	for started, ok := range map[int64]bool{0: false, 99: false, 100: true} {
		if err := (&Place{}).is(here, st, started); (err == nil) != ok || !ok && !errors.Is(err, foreign.ErrOther) {
			t.Errorf("began at %d, changed at %d: %v", started, st.Ctime, err)
		}
	}
	if err := (&Place{}).is(&Mapped{Process{}, m}, st, 100); !errors.Is(err, foreign.ErrOther) {
		t.Errorf("of another machine: %v", err)
	}
	st.DevMinor++
	if err := (&Place{through: true, Alive: here.Process.Alive}).is(here, st, 0); err != nil {
		t.Errorf("another device number through map_files: %v", err)
	}
	if err := (&Place{}).is(here, st, 100); !errors.Is(err, foreign.ErrOther) {
		t.Errorf("another device by path: %v", err)
	}
}

// What has another file's build-id is not taken for that file.
func TestForgedBuildID(t *testing.T) {
	testneed.Live(t)
	c := newCache(t, 0)
	pid, exe := child(t)
	m := mappingOf(t, pid, exe)
	m.BuildID = idOf(t, exe)
	var loads atomic.Int32
	load := func(io.ReaderAt, int64) (any, error) { return loads.Add(1), nil }
	for range 2 {
		if v, err := c.Load(Seen(pid), &m, "x", load); err != nil || v != int32(1) {
			t.Errorf("%v, %v", v, err)
		}
	}
	other, copied := child(t) // the same build, another inode
	n := mappingOf(t, other, copied)
	n.BuildID = m.BuildID
	if v, err := c.Load(Seen(other), &n, "x", load); err != nil || v != int32(2) {
		t.Errorf("another file of that build-id: %v, %v", v, err)
	}
}

// What is learnt bit by bit obeys the same bound as what is loaded.
func TestUpdate(t *testing.T) {
	c := newCache(t, 10_000)
	add := func(k Key, more costs) {
		c.Update(k, "x", func(old Coster) Coster {
			if old == nil {
				return more
			}
			return old.(costs) + more
		})
		if c.cost > c.max || len(c.entries) != c.recent.Len() {
			t.Errorf("%d bytes in %d entries, at most %d", c.cost, len(c.entries), c.max)
		}
	}
	a, b := Key{Build: "a"}, Key{Build: "b"}
	add(a, 3000)
	add(b, 3000)
	add(a, 3000)
	if v := c.Get(a, "x"); v != costs(6000) || c.cost != 9000 {
		t.Errorf("%v, %d bytes", v, c.cost)
	}
	add(b, 5000) // a goes
	if c.Get(a, "x") != nil || c.Get(b, "x") != costs(8000) || c.Get(b, "y") != nil {
		t.Errorf("a %v, b %v", c.Get(a, "x"), c.Get(b, "x"))
	}
	add(b, 5000) // too large by itself
	if c.Get(b, "x") != nil || c.cost != 0 {
		t.Errorf("b %v, %d bytes", c.Get(b, "x"), c.cost)
	}
	add(a, 1)
	if c.Drop(a, "x"); c.Get(a, "x") != nil || c.cost != 0 {
		t.Errorf("a %v, %d bytes", c.Get(a, "x"), c.cost)
	}
}

// A task is reached by its own number, or by a thread that lived if the first one had ended.
func TestOf(t *testing.T) {
	thread := func(id, start uint64, exited uint32) *kcdata.Thread {
		return &kcdata.Thread{ID: id, Linux: kcdata.LinuxThread{StartBoottime: start, ExitState: exited}}
	}
	for _, c := range []struct {
		threads    []*kcdata.Thread
		pid, start uint64
	}{
		{[]*kcdata.Thread{thread(7, 1, 0), thread(8, 2, 0)}, 7, 1},
		{[]*kcdata.Thread{thread(7, 1, 0), thread(8, 2, 16), thread(9, 3, 0)}, 7, 1},
		{[]*kcdata.Thread{thread(7, 1, 32), thread(8, 2, 16), thread(9, 3, 0)}, 9, 3},
		{[]*kcdata.Thread{thread(8, 2, 0)}, 7, 1}, // the first one is not in the file
		{[]*kcdata.Thread{thread(7, 1, 32), thread(8, 0, 0)}, 7, 1},
	} {
		p := Of(&kcdata.Task{ID: 7, Linux: kcdata.LinuxTask{StartBoottime: 1}, Threads: c.threads}, "/proc")
		if p.Pid != c.pid || p.Start != c.start || p.Proc != "/proc" {
			t.Errorf("%+v, want %d since %d", p, c.pid, c.start)
		}
	}
}
