package account

import (
	"encoding/json"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// What is said of a record in brief, in full and as JSON are the same figures.
func TestOneAccount(t *testing.T) {
	s := &kcdata.Snapshot{
		HasCapture: true, Engine: "trap", Isolation: "irqoff",
		Capture:   kcdata.LinuxCapture{StoppedNs: 25_000_000, WindowNs: 7_000_000, ArrivalNs: 36_000, Tries: 2, StopBroken: 3},
		Atomicity: &kcdata.LinuxAtomicity{Compared: 712, Ran: 5, Gone: 1, Missed: 2, Method: kcdata.AtomicityInWindow, SpanNs: 12_000_000},
		Ran:       []kcdata.LinuxRan{{Tid: 41, Tgid: 40, RuntimeNs: 7}, {Tid: 9, Tgid: 8, RuntimeNs: 900}},
		Tasks:     []*kcdata.Task{{ID: 40, Name: "sh\x1b", Threads: []*kcdata.Thread{{ID: 41, Name: "w"}}}},
		CPUs: []kcdata.LinuxCPU{
			{CPU: 0, Flags: kcdata.CPUStopped, ArriveNs: 1000, Threads: 4}, {CPU: 1, Flags: kcdata.CPUStopped, ArriveNs: 37_000}, {CPU: 2, Flags: kcdata.CPULeft},
		},
	}
	m, p, a := MachineOf(s), PauseOf(s, nil), AtomicityOf(s)
	for _, c := range []struct {
		what       string
		brief      string
		full       string
		json       any
		both       []string
		inJSON     []string
		onlyInFull string
	}{
		{"pause", BriefPause(s), p.Full(&m), CaptureJSON(s), []string{"stopped for 25 ms", "2 of 3 CPUs"}, []string{`"stopped_ns":25000000`, `"tries":2`, `"isolation":"irqoff"`}, "CPU 1 last"},
		{"atomicity", BriefAtomicity(s), a.Full(), AtomicityJSON(s), []string{"5 of 712 threads ran during the window"}, []string{`"ran":5`, `"compared":712`, `"method":"in_window"`, `"tid":41`}, "1 gone"},
	} {
		b, err := json.Marshal(c.json)
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range c.both {
			if brief := strings.Replace(c.brief, " in 2 tries", "", 1); !strings.Contains(brief, strings.TrimSuffix(words, " CPUs")) || !strings.Contains(c.full, words) {
				t.Errorf("%s: %q is missing:\n%s\n%s", c.what, words, c.brief, c.full)
			}
		}
		for _, member := range c.inJSON {
			if !strings.Contains(string(b), member) {
				t.Errorf("%s: no %s in %s", c.what, member, b)
			}
		}
		if !strings.Contains(c.full, c.onlyInFull) {
			t.Errorf("%s: %s", c.what, c.full)
		}
	}
	if got := a.Threads; len(got) != 2 || got[0].String() != "? [8] tid 9" || got[1].String() != `sh\x1b [40] tid 41 "w"` {
		t.Errorf("who ran: %v", got)
	}
	if w := p.CPUs; len(w) != 2 || *w[0].AfterNs != 0 || *w[1].AfterNs != 36_000 || *p.LastCPU != 1 {
		t.Errorf("works %+v, last %v", w, p.LastCPU)
	}
	if Broken(0) != "" || Broken(3) != "the stop was broken 3 times" {
		t.Errorf("%q", Broken(3))
	}
}

// Earlier files list a task once for each of its parts: it is one task.
func TestLeftOutTasksCountOnce(t *testing.T) {
	s := &kcdata.Snapshot{HasCapture: true, LeftOut: []kcdata.LinuxLeftOut{
		{Tgid: 9, Reason: kcdata.LeftOutNoSpace, Threads: 64}, {Tgid: 7, Reason: kcdata.LeftOutNoSpace, Threads: 1},
		{Tgid: 9, Reason: kcdata.LeftOutNoSpace, Threads: 36},
	}}
	got := strings.Join(LeftOut(s), "\n")
	if want := "left out, the buffer was full: 2 tasks with 101 threads (pid 7,9)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What was read stands in the JSON, also zero; what was not read has no key, and no limit is no number.
func TestCgroupsJSON(t *testing.T) {
	if CgroupsJSON(&kcdata.Snapshot{}) != nil {
		t.Error("an object without a record")
	}
	top := &kcdata.Cgroup{Path: "/", LinuxCgroup: kcdata.LinuxCgroup{Version: 2, Outcome: kcdata.CgroupDenied, Errno: 13, Flags: kcdata.CgroupAbove, Max: 9}}
	in := &kcdata.Cgroup{Path: "/a\x1b", Above: top, LinuxCgroup: kcdata.LinuxCgroup{
		Version: 2, Tasks: 1, Threads: 2, Present: kcdata.CgroupHasMax | kcdata.CgroupHasHigh | kcdata.CgroupHasSwap | kcdata.CgroupHasEvents | kcdata.CgroupHasPressure,
		Max: 4096, High: kcdata.CgroupUnlimited, MaxEvents: 7, SomeAvg10: 1234, FullTotalUs: 5, OOMKill: 3,
	}}
	s := &kcdata.Snapshot{CgroupsTaken: &kcdata.LinuxCgroupsTaken{Groups: 1, Above: 1, Flags: kcdata.CgroupsHung}, Cgroups: []*kcdata.Cgroup{top, in}}
	b, err := json.Marshal(CgroupsJSON(s))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"tasks":0,"unknown":0,"with_threads":1,"above":1,"read":0,"gone":0,"denied":0,"late":0,"hidden":0,"failed":0,"rest":0,"monotonic_ns":0,"total_ns":0,"not_done":["hung"],` +
		`"groups":[{"path":"/","version":2,"outcome":"denied","errno":13,"flags":["above"],"tasks":0,"threads":0},` +
		`{"path":"/a\\x1b","version":2,"above":0,"outcome":"read","flags":[],"tasks":1,"threads":2,"max":4096,"swap":0,"unlimited":["high"],"low_events":0,"high_events":0,"max_events":7,"oom_events":0,` +
		`"pressure":{"some_avg10":12.34,"some_avg60":0,"some_total_us":0,"full_avg10":0,"full_avg60":0,"full_total_us":5}}]}`
	if string(b) != want {
		t.Errorf("%s\nwant\n%s", b, want)
	}
}

// What is said of open files, in words and as JSON: each thing that was not done, too.
func TestFiles(t *testing.T) {
	s := &kcdata.Snapshot{}
	if BriefFiles(s) != "" || FilesJSON(nil) != nil {
		t.Error("open files that were not recorded")
	}
	s.FilesTaken = &kcdata.LinuxFilesTaken{Sources: kcdata.FilesHasTable | kcdata.FilesHasPass, Threads: 212, Files: 1340, Ends: 96, Looked: 18211, PassNs: 12_000_000, Moved: 1}
	if got, want := BriefFiles(s), "open files: 212 threads at 1,340 files; other ends: 18,211 descriptors looked at in 12 ms, 96 found, 1 thread had gone on by then"; got != want {
		t.Errorf("%s\n%s", got, want)
	}
	s.FilesTaken = &kcdata.LinuxFilesTaken{Sources: kcdata.FilesHasProc, Threads: 1, Files: 1, Looked: 1, Processes: 2, Unsettled: 1}
	if got, want := BriefFiles(s), "open files: 1 thread at 1 file; other ends: 1 descriptor of 2 processes looked at in /proc in 0 us, 0 found, 1 process could not be looked at"; got != want {
		t.Errorf("%s\n%s", got, want)
	}
	for i := range 7 {
		s.FilesTaken = &kcdata.LinuxFilesTaken{Flags: 1 << i}
		text := BriefFiles(s)
		b, err := json.Marshal(FilesJSON(s.FilesTaken))
		if err != nil || !strings.HasPrefix(text, "open files: 0 threads at 0 files; ") || strings.Contains(string(b), `"not_done":[]`) {
			t.Errorf("flag %d: %q, %s, %v", i, text, b, err)
		}
	}
}

func TestPanicTitle(t *testing.T) {
	p := &kcdata.LinuxPanic{Cause: kcdata.PanicByPanic, CPU: 1, Tid: 123, Comm: [16]byte{'b', 'a', 's', 'h'}, Message: [256]byte{'o', 'o', 'p', 's', 0x1b}}
	s := &kcdata.Snapshot{Panic: p}
	for _, c := range []struct {
		change func()
		want   string
	}{
		{func() {}, `kernel panic: oops\x1b, on CPU 1 by bash [123]`},
		{func() { p.Tid, p.Message = 0, [256]byte{} }, "kernel panic, on CPU 1 by its idle thread"},
		{func() { p.Cause, p.Key, p.Tid = kcdata.PanicBySysrq, 'y', 7 }, "by SysRq y, on CPU 1 by bash [7]"},
		{func() { p.Key, p.Cause = 1, kcdata.PanicBySysrq }, "by SysRq 0x1, on CPU 1 by bash [7]"},
		{func() { p.Cause = kcdata.PanicByCrash }, "kernel crash, on CPU 1 by bash [7]"},
	} {
		c.change()
		if got := PanicTitle(s); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if PanicTitle(&kcdata.Snapshot{}) != "" || PanicLimits(&kcdata.Snapshot{}) != nil || PanicJSON(&kcdata.Snapshot{}) != nil {
		t.Error("a file of no panic says something of one")
	}
}

// Everything that a panic's records may lack has a sentence with its number.
func TestPanicLimits(t *testing.T) {
	p := &kcdata.LinuxPanic{Outcome: kcdata.PanicWhole}
	s := &kcdata.Snapshot{Panic: p}
	if got := PanicLimits(s); len(got) > 0 {
		t.Errorf("%q of a whole one", got)
	}
	for want, change := range map[string]func(){
		"did not come to the end": func() { p.Outcome, p.Threads = kcdata.PanicInProgress, 41 }, "41 threads": func() { p.Outcome, p.Threads = kcdata.PanicNoRoom, 41 },
		"the time for the records was up": func() { p.Outcome = kcdata.PanicOutOfTime }, "not known (9)": func() { p.Outcome = 9 },
		"are damaged in the dump": func() { p.Flags = kcdata.PanicTorn }, "43 pages": func() { p.PagesLost = 43 }, "44 pages": func() { p.PagesAbsent = 44 },
		"45 more calls": func() { p.Nested = 45 }, "46 SysRqs": func() { p.Lost = 46 },
	} {
		*p = kcdata.LinuxPanic{Outcome: kcdata.PanicWhole}
		change()
		if got := PanicLimits(s); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPanicStill(t *testing.T) {
	on := func(cpu uint32, present uint64) *kcdata.Thread {
		return &kcdata.Thread{HasLinux: true, Linux: kcdata.LinuxThread{OnCPU: 1, CPU: cpu, Present: present}}
	}
	s := &kcdata.Snapshot{Panic: &kcdata.LinuxPanic{CPU: 1}, Tasks: []*kcdata.Task{{Threads: []*kcdata.Thread{on(0, 0), on(1, 0), on(2, kcdata.ThreadIsIdle)}}}}
	if got := PanicStill(s); got != "nothing was stopped: CPU 1 recorded all threads one after the other; 1 thread ran on other CPUs, without a stack here" {
		t.Error(got)
	}
}

// The first line names the kernel, also that of a file which Apple's wrote, and Linux only if it was that.
func TestSystemIsNamed(t *testing.T) {
	ours := &kcdata.Snapshot{Hostname: "db7", Engine: "trap", Version: "#1 SMP: x", Release: "6.18.0", Arch: "arm64"}
	noRelease := &kcdata.Snapshot{Engine: "trap", Version: "#1 SMP"}
	darwin := &kcdata.Snapshot{Version: "Darwin Kernel Version 16.0.0: Tue Jul 12 10:56:08 PDT 2016; root:xnu"}
	for want, s := range map[string]*kcdata.Snapshot{
		"stackshot of db7, Linux 6.18.0 arm64": ours, "stackshot of unknown host, Linux of unknown release": noRelease,
		"stackshot of unknown host, Darwin Kernel Version 16.0.0": darwin, "stackshot of unknown host, unknown system": {},
	} {
		if got := BriefMachine(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
