package symbol

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/elffile"
	"stackshot/internal/foreign"
	"stackshot/internal/testfuse"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// jitted is a live process with an address in generated code, and the place of
// its perf map.
func jitted(t *testing.T) (task *kcdata.Task, addr uint64, path string) {
	t.Helper()
	prog := compiled(t, "gcc", "names.c", "-O2")
	task = taskOf(t, running(t, prog).Pid)
	addr = 0x7000
	task.Mappings = append([]kcdata.Mapping{{LinuxMapping: kcdata.LinuxMapping{Start: 0x7000, End: 0x8000, Flags: kcdata.MappingAnon}}}, task.Mappings...)
	task = asked(task, addr)
	path = fmt.Sprintf("/tmp/perf-%d.map", task.ID)
	t.Cleanup(func() { os.Remove(path) })
	return task, addr, path
}

func TestPerfMapOfAProcess(t *testing.T) {
	testneed.Live(t)
	task, addr, path := jitted(t)
	r := resolver(t, Options{Local: true}, foreign.Options{})
	res := r.Resolve(t.Context(), []*kcdata.Task{task})
	if len(res.Skipped) > 0 || res.Tasks[task] != nil {
		t.Errorf("without a map: %v, skipped %v", res.Tasks[task], res.Skipped)
	}
	for _, name := range []string{"first", "later"} { // code is generated as time goes by
		if err := os.WriteFile(path, []byte("6ff8 10 "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		want := kcdata.UserFunction{Name: name, Module: "[jit]", Offset: 8}
		dotnet := asked(task, addr)
		dotnet.Mappings = slices.Clone(task.Mappings)
		dotnet.Mappings[0].Flags, dotnet.Mappings[0].Inode, dotnet.Mappings[0].Path = kcdata.MappingDeleted, 7, "/memfd:doublemapper"
		if got := one(t, r, dotnet, addr); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got := one(t, r, task, addr); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	task.Threads[0].NS = []kcdata.LinuxThreadNS{{Inode: 1, Tid: 4}, {Inode: 2, Tid: 77}}
	if got := perfMapPath(task); got != "/tmp/perf-77.map" {
		t.Errorf("in its own pid namespace it is %s", got)
	}
	task.Threads[0].NS = nil
	task.Linux.StartBoottime += uint64(time.Second) // its number is another process's by now
	const ended = "the process has ended"
	for _, c := range []struct {
		listed string
		failed []string
		want   string
	}{{"", nil, ""}, {path, nil, ended}, {"", []string{"perf map: " + path + ": owned by another user"}, ended}} {
		task.PerfMap, task.EnrichFailed = c.listed, c.failed
		res = r.Resolve(t.Context(), []*kcdata.Task{task})
		if why := skipped(res, path); why != c.want || res.Tasks[task] != nil {
			t.Errorf("the map %q, %q: %v, skipped %v, want %q", c.listed, c.failed, res.Tasks[task], res.Skipped, c.want)
		}
	}
	for what, lose := range map[string]func(task *kcdata.Task){
		"its ids": func(task *kcdata.Task) { task.Linux.Present &^= kcdata.TaskHasIDs }, "its mappings": func(task *kcdata.Task) { task.Mappings = nil },
	} {
		lost := *task
		lost.PerfMap, lost.EnrichFailed = "", nil
		lose(&lost)
		if res = r.Resolve(t.Context(), []*kcdata.Task{&lost}); skipped(res, path) != ended {
			t.Errorf("%s were not read: skipped %v", what, res.Skipped)
		}
	}
}

// A zombie's root is not there, which says nothing of its map.
func TestPerfMapOfAZombie(t *testing.T) {
	testneed.Live(t)
	task, _, path := jitted(t)
	if err := os.WriteFile(path, []byte("6ff8 10 first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	unix.Kill(int(task.ID), unix.SIGKILL) // nobody waits for it before the test ends
	for end := time.Now().Add(testneed.Patience); ; time.Sleep(time.Millisecond) {
		if _, err := os.Readlink(fmt.Sprintf("/proc/%d/root", task.ID)); errors.Is(err, fs.ErrNotExist) {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	r := resolver(t, Options{Local: true}, foreign.Options{})
	for _, c := range []struct {
		listed string
		failed []string
		want   string
	}{{"", nil, ""}, {path, nil, "the process has ended"}, {"", []string{"perf map: late"}, "the process has ended"}} {
		task.PerfMap, task.EnrichFailed = c.listed, c.failed
		if res := r.Resolve(t.Context(), []*kcdata.Task{task}); skipped(res, path) != c.want {
			t.Errorf("the map %q, %q: skipped %v", c.listed, c.failed, res.Skipped)
		}
	}
}

// Of a process that lives, the map that the capture found is missed if it is there no more.
func TestPerfMapGone(t *testing.T) {
	testneed.Live(t)
	task, _, path := jitted(t)
	task.PerfMap = path
	res := resolver(t, Options{Local: true}, foreign.Options{}).Resolve(t.Context(), []*kcdata.Task{task})
	if why := skipped(res, path); why != "the file is not there" {
		t.Errorf("skipped %v", res.Skipped)
	}
}

// Whoever may not look into a process misses the map that was there, and no other. Of a process that
// one may look into, a map that cannot be read is missed.
func TestPerfMapNotRead(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	task, _, path := jitted(t)
	for _, listed := range []string{"", path} {
		task.PerfMap = listed
		unread := *task
		unread.EnrichFailed = []string{"perf map: late"}
		w := newWanted(true, "/proc")
		w.addTask(task, nil)
		jobs := w.order
		w = newWanted(true, "/proc")
		w.addTask(&unread, nil)
		jobs = append(jobs, w.order...)
		r := resolver(t, Options{Local: true}, foreign.Options{Refuse: fs.ErrPermission})
		if _, err := r.perfNames(jobs[0]); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("may look into it, the map %q: %v", listed, err)
		}
		missed := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends without its rights
			unix.Setfsuid(65534)
			var none [2]unix.CapUserData
			if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
				t.Error(err)
			}
			for _, j := range jobs {
				_, err := r.perfNames(j)
				missed <- err
			}
		}()
		if err := <-missed; (err != nil) != (listed != "") {
			t.Errorf("may not look into it, the map %q: %v", listed, err)
		}
		if err := <-missed; err == nil {
			t.Errorf("may not look into it, nor could the capture, the map %q: not missed", listed)
		}
	}
}

// A perf map that is a trap is named as such: foreign has all kinds of them.
func TestHostilePerfMaps(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	for why, trap := range map[error]func(path string) error{
		foreign.ErrSymlink: func(p string) error { return os.Symlink("/dev/zero", p) },
		foreign.ErrOwner: func(p string) error {
			return cmp.Or(os.WriteFile(p, []byte("7000 10 evil\n"), 0o644), os.Chown(p, 4242, 4242))
		},
	} {
		task, addr, path := jitted(t)
		if err := trap(path); err != nil {
			t.Fatal(err)
		}
		task.Linux.UID, task.Linux.EUID = 1000, 1000
		res := resolver(t, Options{Local: true}, foreign.Options{}).Resolve(t.Context(), []*kcdata.Task{task})
		if got := res.Tasks[task].Functions(kcdata.UserPlace{Addr: addr, Exact: true}); got != nil || !strings.Contains(skipped(res, path), why.Error()) {
			t.Errorf("%+v, skipped %v, want %q", got, res.Skipped, why)
		}
	}
}

// stalledMount mounts a FUSE file system that answers nothing, in a mount
// namespace of a thread's own. It returns that thread's tid.
func stalledMount(t *testing.T, dir string) (tid int) {
	t.Helper()
	testneed.Root(t)
	type mounted struct {
		tid    int
		server *testfuse.Server
		err    error
	}
	ready, over := make(chan mounted), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends here
		m := mounted{tid: unix.Gettid()}
		m.err = cmp.Or(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		if m.err == nil {
			m.server, m.err = testfuse.Mount(dir, "stalled", func(*testfuse.Server, testfuse.Request) {})
		}
		ready <- m
		<-over
	}()
	m := <-ready
	t.Cleanup(func() {
		if m.server != nil {
			m.server.Close()
		}
		close(over)
	})
	if m.err != nil {
		t.Fatal(m.err)
	}
	return m.tid
}

// With every helper stuck the call still ends at its own limit.
func TestLimitOfTheWhole(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	dir := t.TempDir()
	tid := stalledMount(t, dir)
	task := &kcdata.Task{ID: uint64(tid), Threads: []*kcdata.Thread{{}}}
	task.Linux.StartBoottime = startOf(t, fmt.Sprintf("/proc/self/task/%d/stat", tid))
	for i := range uint64(20) {
		lo := i<<20 + 0x1000
		task.Mappings = append(task.Mappings, kcdata.Mapping{LinuxMapping: kcdata.LinuxMapping{Start: lo, End: lo + 0x1000, Inode: i + 1}, Path: fmt.Sprintf("%s/%d", dir, i), BuildID: []byte{byte(i + 1)}})
		task.Threads[0].User = append(task.Threads[0].User, lo+8)
	}
	r := resolver(t, Options{Local: true, Proc: "/proc/self/task", Limit: 2 * time.Second}, foreign.Options{Limit: time.Minute, Remote: true})
	began := time.Now()
	res := r.Resolve(t.Context(), []*kcdata.Task{task})
	if took := time.Since(began); took < time.Second || took > 7*time.Second {
		t.Errorf("took %v with a limit of 2s; skipped: %v", took, res.Skipped)
	}
	if len(res.Skipped) != 20 {
		t.Errorf("skipped %d of 20: %v", len(res.Skipped), res.Skipped)
	}
	if n := res.Tasks[task].Len(); n != 20 {
		t.Errorf("%d of 20 addresses have their module", n)
	}
}

// A name that cannot be read as a file is said once, with the reason.
func TestNotAnELFFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(dir, bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	task := &kcdata.Task{ID: 1, Mappings: []kcdata.Mapping{{LinuxMapping: kcdata.LinuxMapping{Start: 0x1000, End: 0x3000, Inode: 5}, Path: dir, BuildID: []byte{1}}}}
	wantResolved(t, resolver(t, Options{}, foreign.Options{}), task, 0x1008, "", elffile.ErrNotELF.Error())
}

// The files that gave no names are listed in the order of the mappings, whichever worker
// ends first: two reports of the same file are the same.
func TestSkippedInOrder(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	dir := t.TempDir()
	task := &kcdata.Task{ID: 1, Threads: []*kcdata.Thread{{}}}
	for i := range uint64(500) {
		lo := i<<20 + 0x1000
		task.Mappings = append(task.Mappings, kcdata.Mapping{LinuxMapping: kcdata.LinuxMapping{Start: lo, End: lo + 0x1000, Inode: i + 1}, Path: fmt.Sprintf("%s/%03d", dir, i), BuildID: []byte{byte(i), byte(i >> 8)}})
		task.Threads[0].User = append(task.Threads[0].User, lo+8)
	}
	for range 5 {
		res := resolver(t, Options{}, foreign.Options{}).Resolve(t.Context(), []*kcdata.Task{task})
		if len(res.Skipped) != 500 {
			t.Fatalf("skipped %d of 500", len(res.Skipped))
		}
		if !slices.IsSortedFunc(res.Skipped, func(a, b Skip) int { return strings.Compare(a.What, b.What) }) {
			t.Fatal("not in the order of the mappings")
		}
	}
}
