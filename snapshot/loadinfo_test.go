package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/engine"
	"stackshot/internal/testelf"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

func needsShell(t *testing.T) {
	t.Helper()
	if userlab.Guest() {
		t.Skip("needs sh, and programs with shared libraries: a guest has none")
	}
}

// program makes a copy of sleep(1) and runs it: its file is the test's own.
func program(t *testing.T) (pid int, path string) {
	t.Helper()
	needsShell(t)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "two  words\n")
	if err := os.WriteFile(path, []byte(slurp(t, sleep)), 0o700); err != nil {
		t.Fatal(err)
	}
	pid = startChild(t, exec.Command("sh", "-c", `echo ready; exec "$0" 600`, path), "ready").pid
	err = testtask.WaitFor(10*time.Second, func() (bool, error) {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		return exe == path && strings.Contains(slurp(t, fmt.Sprintf("/proc/%d/maps", pid)), "libc"), nil
	})
	if err != nil {
		t.Fatalf("it does not start: %v", err)
	}
	return pid, path
}

// wantMaps holds a task's mappings against /proc/PID/maps, and their build-ids
// against readelf's word on the file behind each.
func wantMaps(t *testing.T, what string, task *kcdata.Task) {
	t.Helper()
	i := 0
	for line := range strings.Lines(slurp(t, fmt.Sprintf("/proc/%d/maps", task.ID))) {
		var start, end, offset, inode uint64
		var major, minor uint32
		var perm string
		if _, err := fmt.Sscanf(line, "%x-%x %s %x %x:%x %d", &start, &end, &perm, &offset, &major, &minor, &inode); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if perm[2] != 'x' {
			continue
		}
		if i == len(task.Mappings) {
			t.Fatalf("%s: %q is not in the file", what, line)
		}
		m := task.Mappings[i]
		i++
		want := kcdata.LinuxMapping{
			Start: start, End: end, Offset: offset, Inode: inode, DevMajor: major, DevMinor: minor,
			Path: m.LinuxMapping.Path, Flags: m.Flags, BuildIDLen: m.BuildIDLen, BuildID: m.LinuxMapping.BuildID,
		}
		name := strings.ReplaceAll(m.Path, "\n", `\012`)
		if m.Flags&kcdata.MappingDeleted != 0 {
			name += " (deleted)"
		}
		if m.LinuxMapping != want || !strings.HasSuffix(line, " "+name+"\n") || (m.Path == "") != (inode == 0 && !strings.Contains(line, "[")) {
			t.Errorf("%s: %+v, want %q", what, m, line)
		}
		if vdso := strings.Contains(line, "[vdso]"); vdso != (m.Flags&kcdata.MappingVDSO != 0) || inode == 0 && !vdso != (m.Flags&kcdata.MappingAnon != 0) {
			t.Errorf("%s: flags %#x, of %q", what, m.Flags, line)
		}
		if inode == 0 {
			if (m.Flags&kcdata.MappingVDSO != 0) != (len(m.BuildID) == 20) {
				t.Errorf("%s: build-id %x, of %q", what, m.BuildID, line)
			}
			continue
		}
		if id := testelf.BuildID(t, fmt.Sprintf("/proc/%d/map_files/%x-%x", task.ID, start, end)); fmt.Sprintf("%x", m.BuildID) != id {
			t.Errorf("%s: build-id %x, readelf %s, of %q", what, m.BuildID, id, line)
		}
	}
	if i != len(task.Mappings) || i < 3 {
		t.Errorf("%s: %d mappings in the file, %d in /proc", what, len(task.Mappings), i)
	}
}

var engines = []string{EngineProcfs, EnginePull, EngineTrap}

// Tasks that stand still, with all engines: what the file has is what /proc has,
// be the file of a mapping there or deleted.
func TestMappingsLikeProc(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	_, pids := stillWorld(t, testtask.Forked, testtask.PipeRead, testtask.ManyThreads(4))
	named, _ := program(t)
	deleted, path := program(t)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	jit := startLoadChild(t, "none")
	for _, pid := range []int{named, deleted, jit} {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		awaitStop(t, pid, pid)
		pids = append(pids, pid)
	}
	for _, engine := range engines {
		s := session(t, Options{Engine: engine})
		for range 2 { // with an empty cache, and with a full one
			_, snap, _ := captureWhole(t, s, Request{Pids: append(slices.Clone(pids), 2)})
			tasks := tasksByID(snap)
			for _, pid := range pids {
				task := tasks[uint64(pid)]
				if task == nil || len(task.EnrichFailed) > 0 {
					t.Fatalf("%s: task %d: %+v", engine, pid, task)
				}
				wantMaps(t, engine, task)
			}
			if k := tasks[2]; k == nil || k.Mappings != nil || k.PerfMap != "" {
				t.Errorf("%s: kthreadd: %+v", engine, k)
			}
			has := func(pid int, flag uint32) bool {
				return slices.ContainsFunc(tasks[uint64(pid)].Mappings, func(m kcdata.Mapping) bool { return m.Flags&flag != 0 })
			}
			if !has(deleted, kcdata.MappingDeleted) || has(named, kcdata.MappingDeleted) || !has(jit, kcdata.MappingAnon) {
				t.Errorf("%s: flags", engine)
			}
		}
	}
}

// A perf map is taken note of only if it is the task's own, in its own namespaces.
func TestPerfMap(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	s := session(t, Options{Engine: EnginePull})
	for what, want := range map[string]string{
		"own": "", "none": "", "fifo": "not a regular file", "link": "a symbolic link", "others": "owned by another user", "huge": "too large",
	} {
		pid := startLoadChild(t, what)
		_, snap, _ := captureWhole(t, s, Request{Pids: []int{pid}})
		task := tasksByID(snap)[uint64(pid)]
		notes := strings.Join(task.EnrichFailed, "; ")
		if (task.PerfMap == "/tmp/perf-1.map") != (what == "own") || (task.PerfMap == "") != (what != "own") {
			t.Errorf("%s: %q", what, task.PerfMap)
		}
		if (want == "") != (notes == "") || !strings.Contains(notes, want) {
			t.Errorf("%s: %q, want %q", what, notes, want)
		}
	}
}

// executed is what is said of a task that has executed another program since the stop.
const executed = "exe: the task has executed another program since; cmdline: the task has executed another program since; maps: the task has executed another program since"

// A task that executes another program between the stop and the reading has
// number and start time of the recorded one, and other mappings.
func TestExecAfterTheStop(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	needsShell(t)
	for _, name := range engines {
		var c *child
		var before string
		s := hooked(t, Options{Engine: name}, engine.Hooks{Released: func() {
			fmt.Fprintln(c.in)
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if now := slurp(t, fmt.Sprintf("/proc/%d/maps", c.pid)); now != before && strings.Contains(now, "libc") {
					return
				}
			}
			t.Error("no exec")
		}})
		for _, next := range []string{"cat", "sh"} { // another program, and the same again
			cmd := exec.Command("sh", "-c", `echo ready; read line; exec "$0"`, next)
			c = startChild(t, cmd, "ready")
			reads := func() (bool, error) {
				return !strings.HasPrefix(slurp(t, fmt.Sprintf("/proc/%d/syscall", c.pid)), "running"), nil
			}
			if err := testtask.WaitFor(10*time.Second, reads); err != nil { // of one that runs /proc has no registers
				t.Fatal(err)
			}
			before = slurp(t, fmt.Sprintf("/proc/%d/maps", c.pid))
			var out bytes.Buffer
			if _, err := s.Take(context.Background(), Request{Pids: []int{c.pid}, Output: &out}); err != nil {
				t.Fatal(err)
			}
			snap, err := parse(t, out.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			task := tasksByID(snap)[uint64(c.pid)]
			if notes := strings.Join(task.EnrichFailed, "; "); task.Mappings != nil || task.ExePath != "" || task.Cmdline != nil || notes != executed {
				t.Errorf("%s, %s: %q, mappings %+v", name, next, notes, task.Mappings)
			}
		}
	}
}

const firstEnds = `#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_t first;
static void *rest(void *a) { pthread_join(first, 0); printf("%d\n", gettid()); fflush(stdout); for (;;) pause(); }
int main(void) { pthread_t t; first = pthread_self(); pthread_create(&t, 0, rest, 0); pthread_exit(0); }
`

// The first thread of a process may have ended before the others, and /proc/PID is then
// nearly empty. Their mappings and names are in the file all the same.
func TestTheFirstThreadHasEnded(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	needsShell(t)
	bin := compiled(t, firstEnds, "-O2", "-pthread", "-D_GNU_SOURCE")
	cmd := exec.Command("sh", "-c", `echo ready; exec "$0" one`, bin)
	c := startChild(t, cmd, "ready")
	line, err := c.out.ReadString('\n')
	tid, _ := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || tid == 0 {
		t.Fatalf("%q, %v", line, err)
	}
	ended := func() (bool, error) {
		return strings.Contains(slurp(t, fmt.Sprintf("/proc/%d/stat", c.pid)), ") Z "), nil
	}
	if err := testtask.WaitFor(10*time.Second, ended); err != nil {
		t.Fatal(err)
	}
	for _, name := range engines {
		_, snap, _ := captureWhole(t, session(t, Options{Engine: name}), Request{Pids: []int{c.pid}})
		task := *tasksByID(snap)[uint64(c.pid)]
		if task.ExePath != bin || !slices.Equal(task.Cmdline, []string{bin, "one"}) || task.EnrichFailed != nil {
			t.Errorf("%s: %q %q %q", name, task.ExePath, task.Cmdline, task.EnrichFailed)
		}
		if th := threadsByID(snap)[uint64(tid)]; len(th.User) < 3 {
			t.Errorf("%s: user stack %#x", name, th.User)
		}
		task.ID = uint64(tid)
		wantMaps(t, name, &task)
	}
}
