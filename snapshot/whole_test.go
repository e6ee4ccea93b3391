package snapshot

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"stackshot/internal/bpf"
	"stackshot/internal/engine"
	"stackshot/internal/engine/proc"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// life is a thread by its number and its start, which together never come again.
type life struct {
	tgid, tid int
	start     uint64 // ticks
}

// living lists all threads of /proc.
func living(tb testing.TB) map[life]bool {
	tb.Helper()
	var fs procfs.FS
	tgids, err := fs.Tasks()
	if err != nil {
		tb.Fatal(err)
	}
	out := map[life]bool{}
	for _, tgid := range tgids {
		tids, _ := fs.Threads(tgid)
		for _, tid := range tids {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", tgid, tid))
			if err != nil {
				continue // ended meanwhile
			}
			st, err := procfs.ParseStat(b)
			if err != nil {
				tb.Fatal(err)
			}
			out[life{tgid, tid, st.StartTime}] = true
		}
	}
	return out
}

// shownToBPF lists the thread groups that a BPF task iterator of this kernel
// shows at all, by a pass of the test's own. Some kernels hide tasks from it
// that /proc has; a task that is not hidden must not be called so.
func shownToBPF(tb testing.TB) map[int]bool {
	tb.Helper()
	o, err := bpf.Load(bpf.Config{CPUs: 1, SelfTgid: uint32(os.Getpid())})
	if err != nil {
		tb.Fatal(err)
	}
	defer o.Close()
	var it bpf.Iterator
	if errno := it.Open(o.Census.FD(), &bpf.Scope{}); errno != 0 {
		tb.Fatal(errno)
	}
	defer it.Close()
	out := map[int]bool{}
	buf := make([]byte, 64<<10)
	for {
		n, errno := it.Read(buf)
		if errno != 0 {
			tb.Fatal(errno)
		}
		if n == 0 {
			return out
		}
		for off := 0; off < n; off += bpf.CensusEntrySize {
			out[int((*bpf.CensusEntry)(unsafe.Pointer(&buf[off])).Tgid)] = true
		}
	}
}

// hiddenIn are the tasks that the file says were read after the release. Each
// must be one that BPF cannot see.
func hiddenIn(tb testing.TB, s *kcdata.Snapshot) map[uint64]bool {
	tb.Helper()
	var shown map[int]bool
	out := map[uint64]bool{}
	for _, w := range s.Warnings {
		if w.Code != "hidden_task" {
			continue
		}
		if shown == nil {
			shown = shownToBPF(tb)
		}
		var tgid int
		if _, err := fmt.Sscanf(w.Text, "task %d ", &tgid); err != nil {
			tb.Errorf("warning %q names no task", w.Text)
		}
		if shown[tgid] {
			tb.Errorf("task %d was lost: BPF iterators do show it (%s)", tgid, w.Text)
		}
		out[uint64(tgid)] = true
	}
	return out
}

// Who lives before and after the window is in the file, exactly once, with all
// threads. (A file with somebody twice fails in take.)
func TestEveryTaskThatLivesThroughTheWindowIsInTheFileOnce(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	testtask.Start(t, append(testtask.All(), testtask.ManyThreads(300), testtask.Bystanders(200))...)
	forEngines(t, func(t *testing.T, engineName string) { everyTaskIsThere(t, session(t, Options{Engine: engineName})) })
}

func everyTaskIsThere(t *testing.T, s *Session) {
	for range testneed.Length(2, 4) {
		before := living(t)
		res, snap, _ := captureWhole(t, s, Request{})
		after := living(t)
		if idle := tasksByID(snap)[0]; idle == nil || len(idle.Threads) != len(res.CPUs.Stopped) {
			t.Errorf("idle task %+v, want a thread for each of %v", idle, res.CPUs.Stopped)
		}
		if snap.Isolation == IsolationIRQOff && res.StopBroken != 0 {
			t.Errorf("at irqoff the stop was broken %d times", res.StopBroken)
		}
		in := map[life]int{}
		for _, task := range snap.Tasks {
			for _, th := range task.Threads {
				in[life{int(task.ID), int(th.ID), th.Linux.StartBoottime / proc.TickNs}]++
			}
		}
		both := 0
		for l := range before {
			if !after[l] {
				continue
			}
			both++
			if in[l] != 1 {
				t.Errorf("thread %d of %d lived through the window and is in the file %d times", l.tid, l.tgid, in[l])
			}
		}
		if both < 500 {
			t.Fatalf("only %d threads lived through the window", both)
		}
		hiddenIn(t, snap)
	}
}

// descs are the named numbers of a file.
func descs(tb testing.TB, file []byte) map[string]uint64 {
	tb.Helper()
	r, err := kcdata.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]uint64{}
	for it, err := range r.Items() {
		if err != nil {
			tb.Fatal(err)
		}
		name, v, ok := it.Desc()
		if n, is := v.(uint64); ok && is {
			out[name] = n
		}
	}
	return out
}

func TestCountsInTheFileEqualItsContainers(t *testing.T) {
	testneed.Smoke(t)
	testneed.Slow(t)
	requireBPF(t)
	testtask.Start(t, testtask.ManyThreads(50), testtask.Bystanders(50), testtask.Zombie)
	for _, engine := range []string{EnginePull, EngineProcfs} {
		res, snap, file := takeWhole(t, Options{Engine: engine}, Request{})
		d := descs(t, file)
		if got, want := d["stackshot_tasks_count"], uint64(len(snap.Tasks)); got != want || res.Tasks != int(want) {
			t.Errorf("%s: tasks: %d said, %d in the result, %d containers", engine, got, res.Tasks, want)
		}
		if got, want := d["stackshot_threads_count"], uint64(snap.ThreadCount()); got != want || res.Threads != int(want) {
			t.Errorf("%s: threads: %d said, %d in the result, %d containers", engine, got, res.Threads, want)
		}
		if int64(len(file)) != res.Bytes {
			t.Errorf("%s: %d bytes said, %d written", engine, res.Bytes, len(file))
		}
		if d["stackshot_tries"] != uint64(res.Tries) || res.Tries < 1 {
			t.Errorf("%s: tries: %d said, %d in the result", engine, d["stackshot_tries"], res.Tries)
		}
	}
}

func TestPerCPUSumsEqualTheTotals(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	testtask.Start(t, testtask.ManyThreads(300), testtask.Bystanders(100))
	for _, o := range []Options{{}, {CPUs: "0"}, {CPUClass: everyCPU(t, "P")}, {Engine: EngineProcfs}, {Buffer: engine.MinBuffer}} {
		if o.Engine == "" {
			o.Engine = EnginePull
		}
		_, snap, _ := takeWhole(t, o, Request{})
		hidden := hiddenIn(t, snap)
		var tasks, threads uint32
		for _, c := range snap.CPUs {
			tasks, threads = tasks+c.Tasks, threads+c.Threads
			if c.Flags&kcdata.CPUWorked == 0 && c.Tasks > 0 {
				t.Errorf("%+v: CPU %d did not work and has %d tasks", o, c.CPU, c.Tasks)
			}
		}
		for _, task := range snap.Tasks {
			if hidden[task.ID] {
				tasks++
				threads += uint32(len(task.Threads))
			}
		}
		if int(tasks) != len(snap.Tasks) || int(threads) != snap.ThreadCount() {
			t.Errorf("%+v: CPUs and hidden ones: %d tasks, %d threads; containers: %d and %d",
				o, tasks, threads, len(snap.Tasks), snap.ThreadCount())
		}
		for _, l := range snap.LatencyCPUs {
			c, ok := snap.CPU(uint32(l.CPU))
			if !ok || uint64(c.Tasks) != l.TasksProcessed || uint64(c.Threads) != l.ThreadsProcessed || c.Bytes != l.TotalBuf {
				t.Errorf("%+v: CPU %d: %+v and %+v", o, l.CPU, c, l)
			}
		}
	}
}

// What a thread says of itself agrees with where it stands.
func TestContainersHoldWhatTheySay(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	testtask.Start(t, testtask.All()...)
	for _, engine := range []string{EnginePull, EngineProcfs} {
		_, snap, _ := takeWhole(t, Options{Engine: engine}, Request{})
		for _, task := range snap.Tasks {
			if !task.HasLinux || task.Transitioning != (task.Exiting != nil) || task.HasSnapshot == task.Transitioning {
				t.Errorf("%s: task %d: records %v %v %v", engine, task.ID, task.HasLinux, task.HasSnapshot, task.Exiting)
			}
			if uint64(task.Linux.Tgid) != task.ID {
				t.Errorf("%s: container %d holds task %d", engine, task.ID, task.Linux.Tgid)
			}
			for _, th := range task.Threads {
				checkThread(t, engine, task, th)
			}
		}
	}
}

func checkThread(t *testing.T, engine string, task *kcdata.Task, th *kcdata.Thread) {
	t.Helper()
	what := fmt.Sprintf("%s: thread %d of task %d (%s)", engine, th.ID, task.ID, th.Name)
	if !th.HasLinux || !th.HasSnapshot || th.Times == nil {
		t.Errorf("%s lacks records", what)
	}
	if uint64(th.Linux.Tgid) != task.ID || !th.IsIdle() && uint64(th.Linux.Tid) != th.ID || th.Snapshot.ThreadID != th.ID {
		t.Errorf("%s says it is %d of %d, and %d", what, th.Linux.Tid, th.Linux.Tgid, th.Snapshot.ThreadID)
	}
	if int(th.Linux.KstackDepth) != len(th.Kernel) {
		t.Errorf("%s: depth %d, %d frames", what, th.Linux.KstackDepth, len(th.Kernel))
	}
	for i, addr := range th.Kernel {
		if addr == 0 {
			t.Errorf("%s: frame %d of %#x is NULL", what, i, th.Kernel)
		}
	}
	if th.Name == "" || strings.ContainsRune(th.Name, 0) {
		t.Errorf("%s has no name", what)
	}
}

// --pid gives those tasks, whole, and nothing else; a thread's number means its
// task, and a number given twice is one task.
func TestRequestOfPidsHoldsThoseTasksWhole(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	f := testtask.Start(t, testtask.ManyThreads(10), testtask.Bystanders(3), testtask.Zombie)
	many, asleep, zombie := f.Children[0], f.Children[2], f.One(testtask.Zombie, "")
	pids := []int{zombie.Pid, many.Tids[4], asleep.Pid, asleep.Pid}
	for _, engine := range []string{EnginePull, EngineProcfs} {
		_, snap, _ := takeWhole(t, Options{Engine: engine}, Request{Pids: pids})
		got := tasksByID(snap)
		if len(snap.Tasks) != 3 || got[uint64(many.Pid)] == nil || got[uint64(asleep.Pid)] == nil || got[uint64(zombie.Pid)] == nil {
			t.Fatalf("%s: tasks %v, asked for %v", engine, snap.Tasks, pids)
		}
		if n := len(got[uint64(many.Pid)].Threads); n != 10 {
			t.Errorf("%s: %d threads of 10", engine, n)
		}
	}
}
