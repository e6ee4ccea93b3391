package symbol

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/foreign"
	"stackshot/internal/image"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// resolver makes one for the test's machine.
func resolver(t testing.TB, o Options, f foreign.Options) *Resolver {
	t.Helper()
	if f.Limit == 0 {
		f.Limit = 10 * time.Second // the host may be busy
	}
	if o.Limit == 0 {
		o.Limit = 30 * time.Second
	}
	files := foreign.New(f)
	t.Cleanup(files.Close)
	return NewResolver(files, o)
}

// running starts a program that prints one byte once it is where it stays.
func running(t testing.TB, name string, args ...string) *os.Process {
	t.Helper()
	c := exec.Command(name, args...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatalf("%s says nothing: %v", name, err)
	}
	return c.Process
}

// taskOf is a process as a capture has it, without its threads.
func taskOf(t testing.TB, pid int) *kcdata.Task {
	t.Helper()
	task := &kcdata.Task{ID: uint64(pid), HasLinux: true}
	task.Linux.Present = kcdata.TaskHasIDs
	task.Linux.UID, task.Linux.EUID = uint32(os.Getuid()), uint32(os.Geteuid())
	task.Linux.StartBoottime = startOf(t, fmt.Sprintf("/proc/%d/stat", pid))
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if m, ok := mappingOf(t, line); ok {
			task.Mappings = append(task.Mappings, m)
		}
	}
	return task
}

func startOf(t testing.TB, file string) uint64 {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	st, err := procfs.ParseStat(b)
	if err != nil {
		t.Fatal(err)
	}
	return st.StartBoottime()
}

func mappingOf(t testing.TB, line string) (m kcdata.Mapping, ok bool) {
	t.Helper()
	var perms string
	if _, err := fmt.Sscanf(line, "%x-%x %s %x %x:%x %d", &m.Start, &m.End, &perms, &m.Offset, &m.DevMajor, &m.DevMinor, &m.Inode); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if i := strings.IndexAny(line, "/["); i >= 0 {
		m.Path = strings.TrimSpace(line[i:])
	}
	if strings.HasSuffix(m.Path, " (deleted)") {
		m.Path, m.Flags = strings.TrimSuffix(m.Path, " (deleted)"), kcdata.MappingDeleted
	}
	switch {
	case m.Path == "[vdso]":
		m.Flags = kcdata.MappingVDSO
	case m.Inode == 0:
		m.Flags = kcdata.MappingAnon
	}
	return m, strings.Contains(perms, "x")
}

// withBuildIDs gives the mappings the build-ids of the files they are of now.
func withBuildIDs(t testing.TB, task *kcdata.Task) *kcdata.Task {
	t.Helper()
	testneed.Root(t) // for map_files
	for i := range task.Mappings {
		if m := &task.Mappings[i]; m.Inode != 0 {
			m.BuildID = opened(t, fmt.Sprintf("/proc/%d/map_files/%x-%x", task.ID, m.Start, m.End)).BuildID()
		}
	}
	return task
}

// address is where a function of a task's file is in memory.
func address(t testing.TB, task *kcdata.Task, file, in, name string) uint64 {
	t.Helper()
	vaddr := symbolAt(t, in, name)
	f := opened(t, in)
	off, ok := f.offset(vaddr)
	if !ok {
		t.Fatalf("%s is in no segment", name)
	}
	for _, m := range task.Mappings {
		if m.Path == file && off >= m.Offset && off-m.Offset < m.End-m.Start {
			return m.Start + off - m.Offset
		}
	}
	t.Fatalf("%s is in no mapping of %s", name, file)
	return 0
}

func one(t testing.TB, r *Resolver, task *kcdata.Task, addr uint64) kcdata.UserFunction {
	t.Helper()
	got := r.Functions(task, kcdata.UserPlace{Addr: addr, Exact: true})
	if len(got) != 1 {
		t.Fatalf("%#x is in %+v", addr, got)
	}
	return got[0]
}

func TestReturnAddresses(t *testing.T) {
	testneed.Live(t)
	prog := compiled(t, "gcc", "names.c", "-O2", "-falign-functions=1")
	task := taskOf(t, running(t, prog).Pid)
	r := resolver(t, Options{Local: true}, foreign.Options{})
	next := address(t, task, prog, prog, "asm_next")
	if got := one(t, r, task, next); got.Name != "asm_next" || got.Offset != 0 {
		t.Errorf("the function itself is %+v", got)
	}
	// A call that is a function's last instruction returns to the next one.
	want := kcdata.UserFunction{Name: "asm_without_size", Module: prog, Offset: 3}
	if got := r.Functions(task, kcdata.UserPlace{Addr: next}); !slices.Equal(got, []kcdata.UserFunction{want}) {
		t.Errorf("returned to, it is %+v, want %+v", got, want)
	}
	// Both in one process: one thread stands where another returns to.
	task.Threads = []*kcdata.Thread{{User: []uint64{next}}, {User: []uint64{0x10, next}}}
	for range 2 {
		table := r.Resolve(t.Context(), []*kcdata.Task{task}).Tasks[task]
		if got := table.Functions(kcdata.UserPlace{Addr: next}); !slices.Equal(got, []kcdata.UserFunction{want}) {
			t.Errorf("returned to, it is %+v, want %+v", got, want)
		}
		if got := table.Functions(kcdata.UserPlace{Addr: next, Exact: true}); len(got) != 1 || got[0].Name != "asm_next" || got[0].Offset != 0 {
			t.Errorf("the function itself is %+v", got)
		}
		slices.Reverse(task.Threads)
	}
}

// Resolve and Functions are one; the leaf and what a signal frame saved are no
// return addresses; a capture's form of the names says the same.
func TestResolveIsFunctions(t *testing.T) {
	testneed.Live(t)
	prog := compiled(t, "gcc", "names.c", "-O2", "-g")
	task := taskOf(t, running(t, prog).Pid)
	leaf, global := address(t, task, prog, prog, "leaf"), address(t, task, prog, prog, "global_function")
	task.Threads = []*kcdata.Thread{
		{User: []uint64{leaf, global + 9, 0x10}},
		{User: []uint64{leaf + 1, leaf + 2, global}, UserHow: []byte{kcdata.UserFrameRegs, kcdata.UserFrameCFI, kcdata.UserFrameSignal}},
	}
	for _, lines := range []bool{false, true} {
		r := resolver(t, Options{Local: true, Lines: lines}, foreign.Options{})
		calls, last := 0, 0
		r.o.Progress = func(done, total int) { calls, last = calls+1, total-done }
		res := r.Resolve(context.Background(), []*kcdata.Task{task})
		table := res.Tasks[task]
		for addr, ret := range map[uint64]bool{leaf: false, global + 9: true, 0x10: true, leaf + 1: false, leaf + 2: true, global: false} {
			p := kcdata.UserPlace{Addr: addr, Exact: !ret}
			want := r.Functions(task, p)
			if got := table.Functions(p); !slices.Equal(got, want) || (addr != 0x10) != (len(got) > 0) {
				t.Errorf("lines %v: %#x is %+v, by itself %+v", lines, addr, got, want)
			}
			for _, f := range want {
				if (f.File == "") == lines {
					t.Errorf("lines %v: %+v", lines, f)
				}
			}
		}
		if len(res.Skipped) > 0 || calls == 0 || last != 0 {
			t.Errorf("skipped %v, %d calls of progress, %d left at the last", res.Skipped, calls, last)
		}
	}
}

func TestVDSO(t *testing.T) {
	testneed.Live(t)
	task := taskOf(t, os.Getpid())
	i := slices.IndexFunc(task.Mappings, func(m kcdata.Mapping) bool { return m.Path == "[vdso]" })
	if i < 0 {
		t.Fatal("no [vdso]")
	}
	m := &task.Mappings[i]
	b, err := image.VDSO(m)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.syms.syms) == 0 {
		t.Fatal("no symbols")
	}
	here := resolver(t, Options{Local: true}, foreign.Options{})
	away := resolver(t, Options{}, foreign.Options{})
	y := f.syms.syms[0]
	fn, _ := f.Function(y.addr)
	want := kcdata.UserFunction{Name: fn.Name, Module: "[vdso]", Offset: 1}
	if got := one(t, here, task, m.Start+y.addr+1); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := one(t, away, task, m.Start+y.addr+1); got.Name != "" {
		t.Errorf("of another machine: %+v", got)
	}
	m.BuildID = f.BuildID()
	if got := one(t, away, task, m.Start+y.addr+1); got != want {
		t.Errorf("the same build elsewhere: %+v", got)
	}
	m.BuildID = []byte{1}
	if got := one(t, here, task, m.Start+y.addr+1); got.Name != "" {
		t.Errorf("another build: %+v", got)
	}
}

// skipped finds the reason given for a file.
func skipped(res *Result, what string) string {
	for _, s := range res.Skipped {
		if s.What == what {
			return s.Reason
		}
	}
	return ""
}

// asked is a task with one address on its one stack.
func asked(task *kcdata.Task, addr uint64) *kcdata.Task {
	out := *task
	out.Threads = []*kcdata.Thread{{User: []uint64{addr}, ID: task.ID}}
	return &out
}

// wantResolved asks for one address and checks its name, or the reason why it
// has none.
func wantResolved(t *testing.T, r *Resolver, task *kcdata.Task, addr uint64, name, why string) {
	t.Helper()
	task = asked(task, addr)
	res := r.Resolve(context.Background(), []*kcdata.Task{task})
	got := res.Tasks[task].Functions(kcdata.UserPlace{Addr: addr, Exact: true})
	m, _ := task.MappingAt(addr)
	if len(got) != 1 || got[0].Name != name || got[0].Module != m.Path {
		t.Errorf("%#x is %+v, want %q; skipped %v", addr, got, name, res.Skipped)
	}
	if reason := skipped(res, m.Path); (reason == "") != (why == "") || !strings.Contains(reason, why) {
		t.Errorf("reason %q, want %q", reason, why)
	}
}

// A file that was deleted is found through its mapping; one that another file
// took the name of is never taken for it.
func TestDeletedAndReplacedFiles(t *testing.T) {
	testneed.Live(t)
	for _, ids := range []bool{true, false} {
		t.Run(fmt.Sprint("build-id ", ids), func(t *testing.T) {
			arg := "-Wl,--build-id"
			if !ids {
				arg = "-Wl,--build-id=none"
			}
			orig := compiled(t, "gcc", "names.c", "-O2", arg)
			other := compiled(t, "gcc", "names.c", "-O0", arg)
			prog := filepath.Join(t.TempDir(), "p")
			copyFile(t, orig, prog)
			p := running(t, prog)
			task := withBuildIDs(t, taskOf(t, p.Pid))
			leaf := address(t, task, prog, orig, "leaf")
			fresh := func() *Resolver { return resolver(t, Options{Local: true}, foreign.Options{}) }
			wantResolved(t, fresh(), task, leaf, "leaf", "")

			os.Remove(prog)
			copyFile(t, other, prog)
			wantResolved(t, fresh(), task, leaf, "leaf", "")
			p.Kill()
			p.Wait()
			wantResolved(t, fresh(), task, leaf, "", foreign.ErrOther.Error())
			os.Remove(prog)
			wantResolved(t, fresh(), task, leaf, "", "not there")
			if ids {
				copyFile(t, orig, prog) // the same build under another inode
				wantResolved(t, fresh(), task, leaf, "leaf", "")
			}
		})
	}
}

// A pid with another start time names nothing of the process's own.
func TestRecycledPid(t *testing.T) {
	testneed.Live(t)
	prog := compiled(t, "gcc", "names.c", "-O2", "-Wl,--build-id=none")
	task := taskOf(t, running(t, prog).Pid)
	leaf := address(t, task, prog, prog, "leaf")
	task.Linux.StartBoottime -= uint64(time.Second)
	os.Chtimes(prog, time.Now(), time.Now()) // a new ctime: no alibi from before the process
	wantResolved(t, resolver(t, Options{Local: true}, foreign.Options{}), task, leaf, "", foreign.ErrOther.Error())
}

// What is known is used again without the file, but only for the same file.
func TestCacheAcrossCaptures(t *testing.T) {
	testneed.Live(t)
	prog := compiled(t, "gcc", "names.c", "-O2")
	p := running(t, prog)
	task := withBuildIDs(t, taskOf(t, p.Pid))
	leaf := address(t, task, prog, prog, "leaf")
	r := resolver(t, Options{Local: true}, foreign.Options{})
	wantResolved(t, r, task, leaf, "leaf", "")
	p.Kill()
	p.Wait()
	os.Remove(prog)
	wantResolved(t, r, task, leaf, "leaf", "")
	forged := *task
	forged.Mappings = slices.Clone(task.Mappings)
	for i := range forged.Mappings {
		forged.Mappings[i].Inode++
	}
	wantResolved(t, r, &forged, leaf, "", "not there")
}

// A file without a build-id that was changed in place is read again.
func TestCacheWithoutBuildID(t *testing.T) {
	testneed.Live(t)
	prog := compiled(t, "gcc", "names.c", "-O2", "-Wl,--build-id=none", "-g")
	task := taskOf(t, running(t, prog).Pid)
	leaf := address(t, task, prog, prog, "leaf")
	r := resolver(t, Options{Local: true}, foreign.Options{})
	wantResolved(t, r, task, leaf, "leaf", "")
	i := slices.IndexFunc(task.Mappings, func(m kcdata.Mapping) bool { return m.Path == prog })
	kept := func() *known { return r.cache.Get(image.KeyOf(&task.Mappings[i]), whatNames).(*known) }
	first := kept().stat
	wantResolved(t, r, task, leaf, "leaf", "")
	os.Chtimes(prog, time.Now(), time.Now())
	wantResolved(t, r, task, leaf, "leaf", "")
	if kept().stat == first {
		t.Error("the changed file was not read again")
	}
}
