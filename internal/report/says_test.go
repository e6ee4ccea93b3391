package report

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// ofTasks are the threads of some tasks.
func ofTasks(s *kcdata.Snapshot, pids ...int) map[*kcdata.Thread]bool {
	only := map[*kcdata.Thread]bool{}
	for _, t := range s.Tasks {
		for _, th := range t.Threads {
			if slices.Contains(pids, int(t.ID)) {
				only[th] = true
			}
		}
	}
	return only
}

// Nothing that is chosen is all, not nothing; and what is not in the file is an alarm.
func TestOnly(t *testing.T) {
	s := deadNFSServer()
	none := textOf(t, s, Options{Only: map[*kcdata.Thread]bool{}, Absent: []uint64{7, 9, 10}})
	for _, want := range []string{"77 threads: 0 shown, 0 idle kernel threads folded, 0 idle threads of CPUs folded, 0 of our own hidden, 77 not asked for", "!! asked for, but not in the file: pid 7,9-10"} {
		if !strings.Contains(none, want) {
			t.Errorf("no %q in\n%s", want, none)
		}
	}
	if one := textOf(t, s, Options{Only: ofTasks(s, 812)}); !strings.Contains(one, "\n77 threads in 65 tasks: 2 in uninterruptible sleep (D), 6 sleeping, 69 not asked for\n") || strings.Contains(one, "bash") {
		t.Errorf("%s", one)
	}
	if all := textOf(t, s, Options{}); !strings.Contains(all, "77 threads: 52 shown") || !strings.Contains(all, " 0 not asked for") {
		t.Errorf("%s", all)
	}
}

// What an alarm says no warning says again; what it does not say stays.
func TestSaidOnce(t *testing.T) {
	missed := spinningDriver()
	missed.Warnings = []kcdata.Warning{
		{Code: "cpu_missed", Text: "CPU 2 did not come to the stop within 10ms"},
		{Code: "stop_aborted", Text: "try 1"},
	}
	behind := func(n uint32, user uint32) *kcdata.Snapshot { // real-time threads first in line on the CPU that was missed
		w := newWorld(1)
		ran := w.onCPU(w.thread(w.task(7, "sh"), "sh", 0, second), 0)
		ran.Sample = &kcdata.LinuxSample{User: user}
		for i := range n {
			w.thread(w.task(20+i, "hog"), "hog", 0, second).Linux.Policy = 2 // SCHED_RR
		}
		for _, t := range w.s.Tasks[1:] {
			t.Threads[0].Linux.RtPriority = 99
		}
		w.s.CPUs[0].Flags, w.s.CPUs[0].RanTid, w.s.CPUs[0].RanTgid = kcdata.CPUMissed|kcdata.CPURanKnown, 7, 7
		return w.done()
	}
	procfs := containerWithoutStop()
	procfs.Warnings = []kcdata.Warning{
		{Code: "engine_procfs", Text: "nothing was stopped: no BPF here"},
		{Code: "no_symbols", Text: "kernel addresses stay numbers"},
	}
	unknown := quiet()
	unknown.Warnings = []kcdata.Warning{{Code: "cpu_missed", Text: "CPU 9 did not come to the stop"}}
	for _, c := range []struct {
		name string
		s    *kcdata.Snapshot
		want []string // each once
	}{
		{"missed", missed, []string{"CPU 2 did not", "irq/55-mlx5 [640] tid 640: suspect it first", "try 1 (stop_aborted)"}},
		{"missed, a hog", behind(1, 1), []string{"CPU 0 did not stop in time. hog [20] tid 20 (RR 99) is first in line there: suspect it first. A sample found sh [7] tid 7, in user mode\n"}},
		{"missed, maybe a hog", behind(1, 0), []string{"CPU 0 did not stop in time. It ran sh [7] tid 7, in the kernel, and first in line is hog [20] tid 20 (RR 99): nobody can say whom to suspect\n"}},
		{"missed, six hogs", behind(6, 1), []string{"It ran sh [7] tid 7, in user mode, and first in line is hog [20] tid 20 (RR 99), hog [21] tid 21 (RR 99), hog [22] tid 22 (RR 99), hog [23] tid 23 (RR 99), and 2 more: nobody"}},
		{"procfs", procfs, []string{"nothing was stopped", "because no BPF here (engine_procfs)", "kernel addresses stay numbers (no_symbols)"}},
		{"a CPU that the file does not have", unknown, []string{"CPU 9 did not come to the stop (cpu_missed)"}},
	} {
		alarms := ""
		for line := range strings.Lines(textOf(t, c.s, Options{})) {
			if strings.HasPrefix(line, "!! ") {
				alarms += line
			}
		}
		for _, s := range c.want {
			if n := strings.Count(alarms, s); n != 1 {
				t.Errorf("%s: %q %d times in\n%s", c.name, s, n, alarms)
			}
		}
	}
}

// Refusals of many tasks are one line with their count; other reasons stay with their task. JSON
// has all of them.
func TestRefusalsAreOneLine(t *testing.T) {
	s := &kcdata.Snapshot{Engine: "procfs"}
	for id := range 40 {
		s.Tasks = append(s.Tasks, &kcdata.Task{
			ID: uint64(id + 2), Name: "other",
			EnrichFailed: []string{"exe: permission denied", "maps: permission denied"},
		})
	}
	s.Tasks[7].EnrichFailed = append(s.Tasks[7].EnrichFailed, "io: it hangs\x1b[31m")
	got, js := textOf(t, s, Options{}), string(jsonOf(t, s, Options{}))
	if strings.Count(got, "permission denied") != 1 || !strings.Contains(got, "not read of 40 tasks: permission denied (exe, maps)") {
		t.Errorf("%s", got)
	}
	if !strings.Contains(got, "not read: io: it hangs") || strings.Contains(got, "\x1b[31m") {
		t.Errorf("another reason: %s", got)
	}
	if n := strings.Count(js, "permission denied"); n != 80 {
		t.Errorf("JSON has %d of 80 refusals", n)
	}
}

// A call is named by the table of who makes it; where that is not known, by none.
func TestSystemCallsOf32BitThreads(t *testing.T) {
	w := newWorld(1)
	task := w.task(70, "mixed")
	for _, c := range []struct {
		name    string
		present uint64
		flags   uint32
	}{
		{"native", 0, kcdata.UserWalked}, {"compat", kcdata.ThreadCompatCall, 0},
		{"old", 0, kcdata.UserCompat}, {"proc", kcdata.ThreadCallUnsure, 0},
	} {
		th := in(w.thread(task, c.name, kcdata.StateInterruptible, second, "__schedule", "schedule", c.name), 29)
		th.Linux.Present |= c.present
		if c.flags != 0 {
			th.UserWalk = &kcdata.LinuxUserWalk{Flags: c.flags}
		}
	}
	s := w.done()
	text, js := textOf(t, s, Options{}), string(jsonOf(t, s, Options{}))
	for name, want := range map[string]string{"native": "in shmget", "compat": "in pause", "old": "in pause", "proc": "in syscall 29"} {
		line := ""
		for l := range strings.Lines(text) {
			if strings.Contains(l, `"`+name+`"`) {
				line = l
			}
		}
		if !strings.Contains(line, want) {
			t.Errorf("%s: %q, want %q", name, line, want)
		}
	}
	for part, n := range map[string]int{`"abi": "compat"`: 2, `"abi": "unknown"`: 1, `"name": "pause"`: 2, `"name": "shmget"`: 1} {
		if got := strings.Count(js, part); got != n {
			t.Errorf("%s: %d times, want %d", part, got, n)
		}
	}
}

func TestStalls(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"cpu some avg10=0.00 avg60=3.00 avg300=9.00 total=1": "",
		"cpu some avg10=58.94 avg60=43.49 avg300=26.92 total=585420992\nio some avg10=3.10 avg60=0 avg300=0 total=1\nio full avg10=1.00 avg60=0 avg300=0 total=1": "cpu 58.94%; io 3.10% (all at once 1.00%)",
		"memory full avg10=7.00 avg60=0 avg300=0 total=1": "memory 7.00%",
		"memory full":               "",
		"io some avg10=\x1b[1m x y": "io \\x1b[1m%",
	} {
		if got := stalls(text); got != want {
			t.Errorf("stalls(%q) = %q, want %q", text, got, want)
		}
	}
}

// A thread's open files stand in the JSON, each socket with its own file; what is not known has no key.
func TestJSONFiles(t *testing.T) {
	th := &kcdata.Thread{ID: 70, Files: []kcdata.LinuxFile{
		{Fd: 3, Kind: kcdata.FilePipe, Op: kcdata.FileOpRead, Flags: kcdata.FileToRead | kcdata.FileStill, Object: 0xffff888000001000, Inode: 7, Dev: 15, Writers: 1},
		{Fd: 4, Kind: kcdata.FileSocket, Op: kcdata.FileOpPoll}, // its socket is not in the file
		{Fd: 5, Kind: kcdata.FileSocket, Op: kcdata.FileOpPoll, Name: [24]byte{'['}},
		{Fd: 6, Kind: kcdata.FileRegular, Op: kcdata.FileOpOFD, LockLen: 9, Flags: kcdata.FileClosed},
	}, Sockets: []kcdata.LinuxSocket{{Fd: 5, Family: 2, Local: [16]byte{127, 0, 0, 1}, LocalPort: 80}}}
	s := &kcdata.Snapshot{Tasks: []*kcdata.Task{{ID: 70, Threads: []*kcdata.Thread{th}}}}
	var d struct {
		Tasks []struct {
			Threads []struct{ Files []json.RawMessage }
		}
	}
	if err := json.Unmarshal(jsonOf(t, s, Options{}), &d); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"fd":3,"kind":"pipe","op":"read","flags":["to_read","still"],"object":"0xffff888000001000","inode":7,"device":"0:15","room":0,"readers":0,"writers":1}`,
		`{"fd":4,"kind":"socket","op":"poll","device":"0:0"}`,
		`{"fd":5,"kind":"socket","op":"poll","name":"[","device":"0:0","socket":{"family":"inet","type":0,"protocol":0,"tcp_state":0,"local":"127.0.0.1:80","bytes_in":0,"bytes_out":0}}`,
		`{"fd":6,"kind":"regular","op":"ofd_lock","flags":["closed"],"lock_how":0,"lock_start":0,"lock_len":9}`,
	}
	got := d.Tasks[0].Threads[0].Files
	if len(got) != len(want) {
		t.Fatalf("%s", got)
	}
	for i := range got {
		var one bytes.Buffer
		if json.Compact(&one, got[i]); one.String() != want[i] {
			t.Errorf("%s\n%s", one.String(), want[i])
		}
	}
	th.Files = nil
	if bytes.Contains(jsonOf(t, s, Options{}), []byte(`"files"`)) {
		t.Error("no open files, and a key for them")
	}
}

// TestIdleKernelFolding: a kernel thread is folded in its ordinary sleep and
// never when it is in D, runs, or is asked for; a user thread never is.
func TestIdleKernelFolding(t *testing.T) {
	for _, c := range []struct {
		name   string
		build  func(w *world)
		o      Options
		folded int
	}{
		{"interruptible", func(w *world) { w.kthread(9, "kswapd0", 1) }, Options{}, 1},
		{"TASK_IDLE", func(w *world) { w.kthread(9, "kworker/0:0", 0x402) }, Options{}, 1},
		{"D", func(w *world) { w.kthread(9, "jbd2/vda1-8", 2) }, Options{}, 0},
		{"running", func(w *world) { w.onCPU(w.kthread(9, "kswapd0", 1), 0) }, Options{}, 0},
		{"all wanted", func(w *world) { w.kthread(9, "kswapd0", 1) }, Options{ShowIdle: true}, 0},
		{"user", func(w *world) { w.thread(w.task(9, "sh"), "sh", 1, 0) }, Options{}, 0},
	} {
		w := newWorld(1)
		c.build(w)
		s := w.done()
		if v := newView(s, Options{Only: ofTasks(s, 9)}); v.counts.Shown != 1 {
			t.Errorf("%s, asked for: %+v", c.name, v.counts)
		}
		if v := newView(s, c.o); v.counts.FoldedKernel != c.folded || v.counts.Shown != 1-c.folded {
			t.Errorf("%s: %+v", c.name, v.counts)
		}
	}
}

// TestColorOnlyAddsColor: without its colours the coloured report is the plain
// one, so colour carries no information of its own.
func TestColorOnlyAddsColor(t *testing.T) {
	for _, st := range stories {
		plain := textOf(t, st.build(), st.o)
		st.o.Color = true
		colored := textOf(t, st.build(), st.o)
		if got := strings.NewReplacer(show.Red, "", show.Bold, "", show.Plain, "").Replace(colored); got != plain {
			t.Errorf("%s: coloured report differs", st.name)
		}
		if !strings.Contains(colored, show.Bold) {
			t.Errorf("%s: no colour", st.name)
		}
	}
}

// TestThreadThatRan: whom the recorder found running has no stack, and the report
// says so; on a CPU that was not stopped it says that.
func TestThreadThatRan(t *testing.T) {
	w := newWorld(2)
	w.s.CPUs[1].Flags = kcdata.CPULeft
	w.thread(w.task(700, "comes"), "comes", kcdata.StateInterruptible, 0).Linux.KstackErr = ranMeanwhile
	w.onCPU(w.thread(w.task(701, "stays"), "stays", 0, 0), 1).Linux.KstackErr = ranMeanwhile
	text := textOf(t, w.done(), Options{})
	for _, want := range []string{"no stack: it was running\n", "no stack: its CPU was not stopped\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
