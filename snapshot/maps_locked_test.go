package snapshot

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// A process that holds its mmap_lock for ever: its mappings, its command line and its stacks, named,
// are in the file, without a word from /proc. Two reads of its files there may hang, not one after
// the other until all have.
func TestWindowMapsOfAHungProcess(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireBPF(t)
	const limit = 2 * time.Second
	hung := userlab.LockedMap(t)
	pid := hung.Pid
	forEngines(t, func(t *testing.T, engineName string) {
		s := openTest(t, Options{Engine: engineName, ArrivalBudget: time.Second, ReadLimit: limit}, engine.Hooks{})
		began := time.Now()
		captureOnce(t, s, Request{Pids: []int{os.Getpid()}})
		without := time.Since(began)
		began = time.Now()
		captureOnce(t, s, Request{Pids: []int{pid}})
		with := time.Since(began)
		t.Logf("%v without the process, %v with it", without, with)
		if with < limit || with > without+5*limit/2 {
			t.Errorf("the capture took %v, %v without the process, with a limit of %v a read", with, without, limit)
		}
		_, snap, file := captureWhole(t, s, Request{Pids: []int{pid}})
		task := tasksByID(snap)[uint64(pid)]
		w := task.MapWalk
		if w == nil || w.Flags&kcdata.MapWalkWriter == 0 {
			t.Fatalf("walk %+v, want one for a writer", w)
		}
		if mayBeLate(w, math.MaxInt, true) {
			t.Skipf("the walk came to its time limit: %+v", w)
		}
		if w.Flags&kcdata.MapWalkWhole == 0 {
			t.Errorf("walk %+v, want all of it", w)
		}
		files := []string{"mapper", "libc.so.6", "ld-linux"}
		if userlab.Guest() {
			files = files[:1] // there are no shared libraries
		}
		for _, name := range files {
			checkHungFile(t, task, name)
		}
		if !slices.ContainsFunc(task.Mappings, func(m kcdata.Mapping) bool { return m.Flags&kcdata.MappingVDSO != 0 }) {
			t.Error("no vDSO")
		}
		if c := task.Cmdline; len(c) != 3 || !strings.HasPrefix(filepath.Base(c[0]), "mapper") || c[1] != "hold" || c[2] != hung.FS.Path("never") {
			t.Errorf("command line %q", c)
		}
		t.Logf("%+v", *w)
		p := named(t, snap, file)
		task, th := p.thread(t, pid)
		if got := frames(task, th); !userlab.InOrder(got, hung.Stack) || th.UserWalk.Flags&kcdata.UserComplete == 0 {
			t.Errorf("the stack is %v, want %v (%s)", got, hung.Stack, note(th))
		}
		if !slices.ContainsFunc(p.stacks([]int{pid}), func(s userlab.Stack) bool { return userlab.InOrder(s.Frames, hung.Beside) }) {
			t.Errorf("no second thread in %v", hung.Beside)
		}
	})
}

// checkHungFile looks for the mapping of a file with that name, and holds its inode
// against the file system's.
func checkHungFile(t *testing.T, task *kcdata.Task, name string) {
	t.Helper()
	for _, m := range task.Mappings {
		if !strings.HasPrefix(filepath.Base(m.Path), name) {
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(m.Path, &st); err != nil {
			t.Errorf("%s: %v", m.Path, err)
		} else if st.Ino != m.Inode || unix.Major(st.Dev) != m.DevMajor || unix.Minor(st.Dev) != m.DevMinor {
			t.Errorf("%s: inode %d of %d:%d, the file system says %d of %#x", m.Path, m.Inode, m.DevMajor, m.DevMinor, st.Ino, st.Dev)
		}
		return
	}
	t.Errorf("no mapping of %s in %+v", name, task.Mappings)
}
