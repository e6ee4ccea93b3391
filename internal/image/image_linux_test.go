package image

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/elfnote"
	"stackshot/internal/foreign"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

func newCache(t *testing.T, maxCost int64) *Cache {
	t.Helper()
	files := foreign.New(foreign.Options{Limit: 10 * time.Second})
	t.Cleanup(files.Close)
	return New(files, maxCost)
}

// own are the executable mappings of a process, as a capture records them.
func own(t *testing.T, pid int) []kcdata.Mapping {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	var out []kcdata.Mapping
	for m, err := range procfs.ParseMaps(b, procfs.PermExec) {
		if err != nil {
			t.Fatal(err)
		}
		r := kcdata.Mapping{Path: m.Path, LinuxMapping: kcdata.LinuxMapping{
			Start: m.Start, End: m.End, Offset: m.Offset, Inode: m.Inode, DevMajor: m.DevMajor, DevMinor: m.DevMinor,
		}}
		if m.Path == "[vdso]" {
			r.Flags = kcdata.MappingVDSO
		}
		if m.Deleted {
			r.Flags |= kcdata.MappingDeleted
		}
		out = append(out, r)
	}
	return out
}

// child starts a copy of sleep(1), so that its file is the test's own.
func child(t *testing.T) (pid int, exe string) {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	exe = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(exe, b, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd.Process.Pid, exe
}

// mappingOf waits for the child's exec.
func mappingOf(t *testing.T, pid int, path string) kcdata.Mapping {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		for _, m := range own(t, pid) {
			if m.Path == path {
				return m
			}
		}
	}
	t.Fatalf("%s is not mapped in %d", path, pid)
	return kcdata.Mapping{}
}

func buildID(r io.ReaderAt, _ int64) (any, error) {
	id, err := elfnote.BuildID(r)
	return fmt.Sprintf("%x", id), err
}

// idOf is the build-id of a file.
func idOf(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	id, err := elfnote.BuildID(f)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestLoadMapped(t *testing.T) {
	testneed.Live(t)
	c := newCache(t, 0)
	pid, exe := child(t)
	m := mappingOf(t, pid, exe)
	want := fmt.Sprintf("%x", idOf(t, exe))
	for _, what := range []string{"by map_files", "again"} {
		if v, err := c.Load(Seen(pid), &m, what, buildID); err != nil || v != want {
			t.Errorf("%s: %v, %v; want %s", what, v, err, want)
		}
	}
	held := m
	held.Flags |= kcdata.MappingInWindow
	for _, path := range []string{m.Path, "program"} { // whole, and the end of one
		held.Path = path
		if v, err := c.Load(Seen(pid), &held, "held "+path, buildID); err != nil || v != want {
			t.Errorf("held, %s: %v, %v", path, v, err)
		}
	}
}

// A file without a name is still the mapping's; what took its name is not.
func TestLoadDeletedAndReplaced(t *testing.T) {
	testneed.Live(t)
	c := newCache(t, 0)
	pid, exe := child(t)
	m := mappingOf(t, pid, exe)
	want := fmt.Sprintf("%x", idOf(t, exe))
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	gone := mappingOf(t, pid, exe)
	if gone.Flags&kcdata.MappingDeleted == 0 {
		t.Fatalf("%+v is not deleted", gone)
	}
	if v, err := c.Load(Seen(pid), &gone, "deleted", buildID); err != nil || v != want {
		t.Errorf("deleted: %v, %v", v, err)
	}
	if err := os.WriteFile(exe, []byte("#!another"), 0o700); err != nil {
		t.Fatal(err)
	}
	// With a wrong address only the name is left, and it is another file's.
	m.Start, m.End = 0x1000, 0x2000
	if v, err := c.Load(Seen(pid), &m, "replaced", buildID); !errors.Is(err, foreign.ErrOther) || v != nil {
		t.Errorf("replaced: %v, %v", v, err)
	}
	m.BuildID = []byte{1, 2, 3}
	if v, err := c.Load(Seen(pid), &m, "replaced, by build-id", buildID); !errors.Is(err, elfnote.ErrNotELF) || v != nil {
		t.Errorf("replaced, by build-id: %v, %v", v, err)
	}
}

// Without its process a file is found by its name, if the build-id agrees.
func TestLoadWithoutProcess(t *testing.T) {
	exe, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	id := idOf(t, exe)
	m := kcdata.Mapping{LinuxMapping: kcdata.LinuxMapping{Start: 1, End: 2, Inode: 99}, Path: exe, BuildID: id}
	if v, err := newCache(t, 0).Load(Seen(0), &m, "x", buildID); err != nil || v != fmt.Sprintf("%x", id) {
		t.Errorf("%v, %v", v, err)
	}
	m.BuildID = append([]byte{^id[0]}, id[1:]...)
	if v, err := newCache(t, 0).Load(Seen(0), &m, "x", buildID); !errors.Is(err, foreign.ErrOther) || v != nil {
		t.Errorf("another build: %v, %v", v, err)
	}
}

func TestLoadVDSO(t *testing.T) {
	c := newCache(t, 0)
	for _, m := range own(t, os.Getpid()) {
		if m.Flags&kcdata.MappingVDSO == 0 {
			continue
		}
		v, err := c.Load(Seen(os.Getpid()), &m, "id", buildID)
		if err != nil || len(v.(string)) != 40 {
			t.Errorf("%v, %v", v, err)
		}
		m.BuildID = make([]byte, 20)
		if v, err := c.Load(Seen(0), &m, "id", buildID); !errors.Is(err, foreign.ErrOther) {
			t.Errorf("another machine's: %v, %v", v, err)
		}
		return
	}
	t.Fatal("no [vdso]")
}

func TestNoFile(t *testing.T) {
	anon := kcdata.Mapping{LinuxMapping: kcdata.LinuxMapping{Start: 1, End: 2, Flags: kcdata.MappingAnon}}
	if v, err := newCache(t, 0).Load(Seen(1), &anon, "x", buildID); !errors.Is(err, ErrNoFile) || v != nil {
		t.Errorf("%v, %v", v, err)
	}
}

// Many callers, one load each of file and what; a file that changes is loaded
// again; errors of the callback are kept.
func TestLoadOnce(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	c := newCache(t, 0)
	pid, exe := child(t)
	m := mappingOf(t, pid, exe)
	var loads atomic.Int32
	load := func(io.ReaderAt, int64) (any, error) { return loads.Add(1), errors.ErrUnsupported }
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			if _, err := c.Load(Seen(pid), &m, fmt.Sprint(i%2), load); !errors.Is(err, errors.ErrUnsupported) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := loads.Load(); n != 2 {
		t.Errorf("%d loads of two things", n)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(exe, later, later); err != nil {
		t.Fatal(err)
	}
	c.Load(Seen(pid), &m, "0", load)
	if n := loads.Load(); n != 3 {
		t.Errorf("%d loads after it changed", n)
	}
}

type costs int64

func (c costs) Cost() int64 { return int64(c) }

// The bound holds, the longest unused goes first, and what is larger than the
// bound is given but not kept.
func TestCostIsBounded(t *testing.T) {
	testneed.Live(t)
	c := newCache(t, 10_000)
	pid, exe := child(t)
	m := mappingOf(t, pid, exe)
	loads := map[string]int{}
	get := func(what string, cost int64) {
		t.Helper()
		v, err := c.Load(Seen(pid), &m, what, func(io.ReaderAt, int64) (any, error) { loads[what]++; return costs(cost), nil })
		if err != nil || v != costs(cost) {
			t.Errorf("%s: %v, %v", what, v, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		var sum int64
		for _, e := range c.entries {
			sum += e.cost
		}
		if sum != c.cost || c.cost > c.max || len(c.entries) != c.recent.Len() {
			t.Errorf("%s: cost %d, by its entries %d, of at most %d", what, c.cost, sum, c.max)
		}
	}
	get("a", 4000)
	get("b", 4000)
	get("a", 4000)
	get("c", 4000) // b goes
	get("a", 4000)
	get("b", 4000)
	get("huge", 10_001)
	get("huge", 10_001)
	get("tiny", 0)
	if loads["a"] != 1 || loads["b"] != 2 || loads["huge"] != 2 {
		t.Errorf("loads %v", loads)
	}
}

// One file that hangs costs one wait. What is merely slow says nothing of its
// device.
func TestHungIsNotWaitedForTwice(t *testing.T) {
	testneed.Live(t)
	const limit = 200 * time.Millisecond
	files := foreign.New(foreign.Options{Limit: limit})
	defer files.Close()
	c := New(files, 0)
	pid, exe := child(t)
	m := mappingOf(t, pid, exe)
	loose := make(chan struct{})
	defer close(loose)
	hang := func(io.ReaderAt, int64) (any, error) { <-loose; return nil, nil }
	if _, err := c.Load(Seen(pid), &m, "slow", hang); !errors.Is(err, procfs.ErrTimeout) {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := c.Load(Seen(pid), &m, "slow", hang); !errors.Is(err, procfs.ErrTimeout) {
			t.Fatal(err)
		}
	}
	if n := files.Hanging(); n != 1 {
		t.Errorf("%d hang", n)
	}
	if _, err := c.Load(Seen(pid), &m, "other", buildID); err != nil && !errors.Is(err, procfs.ErrTimeout) {
		t.Error(err)
	}
}

// A read that failed says nothing of the file, whatever the callback makes of it:
// it is not kept. The end of the file is not such a failure.
func TestFailedReadIsNotKept(t *testing.T) {
	testneed.Live(t)
	files := foreign.New(foreign.Options{Limit: 10 * time.Second})
	defer files.Close()
	pid, exe := child(t)
	m := mappingOf(t, pid, exe)
	c := New(files, 0)
	for _, swallow := range []bool{true, false} {
		what := fmt.Sprint("swallowed ", swallow)
		first := true
		load := func(r io.ReaderAt, size int64) (any, error) {
			if first {
				first = false
				failing := r.(*watched)
				failing.in = failingReader{failing.in}
			}
			b := make([]byte, 64)
			if _, err := r.ReadAt(b, 0); err != nil && !swallow {
				return nil, fmt.Errorf("header: %w", err)
			}
			if _, err := r.ReadAt(b, size); err != io.EOF {
				return nil, fmt.Errorf("behind the end: %w", err)
			}
			return string(b[:4]), nil
		}
		if v, err := c.Load(Seen(pid), &m, what, load); !errors.Is(err, unix.EIO) || v != nil {
			t.Errorf("%s: %v, %v", what, v, err)
		}
		if v, err := c.Load(Seen(pid), &m, what, load); err != nil || v != "\x7fELF" {
			t.Errorf("%s, again: %v, %v", what, v, err)
		}
	}
}

type failingReader struct{ io.ReaderAt }

func (f failingReader) ReadAt(p []byte, off int64) (int, error) {
	if off == 0 {
		return 0, unix.EIO
	}
	return f.ReaderAt.ReadAt(p, off)
}
