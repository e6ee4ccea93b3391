package verdict

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/model"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// constants are the values of a type's constants in Go files.
func constants(t *testing.T, typ string, files ...string) (out []string) {
	t.Helper()
	pattern := regexp.MustCompile(`(?m)^\t\w+ +` + typ + ` += "([a-z_]+)"`)
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pattern.FindAllStringSubmatch(string(source), -1) {
			out = append(out, m[1])
		}
	}
	if len(out) < 2 {
		t.Fatalf("%d values of %s", len(out), typ)
	}
	return out
}

// docs/hang.md ends with a table of the kinds. Rewrite it with:
// go test ./internal/verdict -run TestKindsAreDocumented -update
func TestKindsAreDocumented(t *testing.T) {
	const page, head = "../../docs/hang.md", "| kind | the thread waits for |\n|---|---|\n"
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text, _, found := strings.Cut(string(doc), head)
	if !found {
		t.Fatalf("%s has no table of kinds", page)
	}
	text += head
	for _, k := range constants(t, "Kind", "../waits/kinds.go") {
		text += "| `" + k + "` | " + Kind(waits.Kind(k)) + " |\n"
	}
	golden.Want(t, page, []byte(text))
}

// Every source of an edge and every reason has its words; docs/hang.md has the former.
func TestWordsAreComplete(t *testing.T) {
	doc, err := os.ReadFile("../../docs/hang.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range constants(t, "Evidence", "../waits/wait.go") {
		if words := evidence[waits.Evidence(e)]; words == "" || !strings.Contains(string(doc), "| "+words+" |") {
			t.Errorf("evidence %s has no words", e)
		}
	}
	for _, r := range constants(t, "Reason", "../waitgraph/verdict.go") {
		if reasons[waitgraph.Reason(r)] == "" {
			t.Errorf("reason %s has no words", r)
		}
	}
}

// scene is a program with threads.
func scene(threads ...string) *kcdata.Task {
	t := &kcdata.Task{ID: 100, Name: "app"}
	for i, name := range threads {
		t.Threads = append(t.Threads, &kcdata.Thread{ID: 100 + uint64(i), Name: name})
	}
	return t
}

func has(t *kcdata.Task, i int, r waits.Relation) waits.Owner {
	return waits.Owner{Task: t, Thread: t.Threads[i], Tid: uint32(t.Threads[i].ID), Pid: uint32(t.ID), Relation: r}
}

func waitsFor(t *kcdata.Task, i int, kind waits.Kind, id uint64, owners ...waits.Owner) *waits.Wait {
	w := &waits.Wait{Task: t, Thread: t.Threads[i], Kind: kind, Owners: owners, Confidence: waits.Sure, Evidence: waits.Field}
	if id != 0 {
		w.Resource = waits.Resource{Kind: kind, ID: id}
	}
	return w
}

// Each relation has its clause.
func TestPhrases(t *testing.T) {
	s := scene("app", "worker", "app", "app", "app")
	gone := waits.Owner{Tid: 7, Pid: 5, Relation: waits.Holds}
	dead := has(s, 1, waits.Holds)
	dead.Dead = true
	s.Threads[2].Files, s.Threads[3].Files = []kcdata.LinuxFile{{Op: kcdata.FileOpRead}}, []kcdata.LinuxFile{{Op: kcdata.FileOpWrite}}
	either := waitsFor(s, 0, waits.Pipe, 0, has(s, 1, "writes"), has(s, 2, "writes"))
	either.AnyOwner = true
	for _, c := range []struct {
		w    *waits.Wait
		want string
	}{
		{waitsFor(s, 0, waits.Mutex, 0x10, has(s, 1, waits.Holds)), `waits for the kernel mutex 0x10 that app [100] tid 101 "worker" holds`},
		{waitsFor(s, 0, waits.Mutex, 0x10, has(s, 0, waits.Holds)), "waits for the kernel mutex 0x10 that it holds itself"},
		{waitsFor(s, 0, waits.Mutex, 0), "waits for a kernel mutex"},
		{waitsFor(s, 0, waits.FilePosition, 0x10), "waits for the position of an open file"},
		{waitsFor(s, 0, waits.FilePosition, 0x10, has(s, 1, waits.Holds)), `waits for the position of an open file that app [100] tid 101 "worker" holds`},
		{waitsFor(s, 0, waits.FilePosition, 0x10, has(s, 2, waits.Holds)), "waits for the position of an open file that app [100] tid 102 holds in the middle of a read"},
		{waitsFor(s, 0, waits.FilePosition, 0x10, has(s, 3, waits.Holds)), "waits for the position of an open file that app [100] tid 103 holds in the middle of a write"},
		{waitsFor(s, 0, waits.FilePosition, 0x10, gone), "waits for the position of an open file that tid 7 of task 5 (not in this file) holds"},
		{waitsFor(s, 0, waits.UserPIMutex, 0x10, dead), `waits for the priority-inheritance mutex 0x10 that app [100] tid 101 "worker" held when it died`},
		{waitsFor(s, 0, waits.Mutex, 0x10, gone), "waits for the kernel mutex 0x10 that tid 7 of task 5 (not in this file) holds"},
		{waitsFor(s, 0, waits.Semaphore, 0x10, has(s, 2, waits.Last)), "waits for the kernel semaphore 0x10 that app [100] tid 102 took last"},
		{waitsFor(s, 0, waits.RWSemRead, 0x10, has(s, 2, waits.Holds), has(s, 3, waits.Holds)), "waits for the kernel rwsem 0x10 (to read) that app [100] tid 102 and app [100] tid 103 hold"},
		{waitsFor(s, 0, waits.ChildEnd, 0, has(s, 2, waits.Child), has(s, 3, waits.Child), has(s, 4, waits.Child)), "waits for its child app [100] tid 102, app [100] tid 103 and 1 more"},
		{waitsFor(s, 0, waits.UserJoin, 0, has(s, 2, waits.Joined)), "waits for the end of app [100] tid 102"},
		{waitsFor(s, 0, waits.Traced, 0, has(s, 2, waits.Tracer)), "waits for its tracer app [100] tid 102"},
		{waitsFor(s, 0, waits.Vfork, 0, has(s, 2, waits.Execs)), "waits for its vfork child app [100] tid 102"},
		{waitsFor(s, 0, waits.CPU, 0, has(s, 2, waits.Runs)), "waits for the CPU that app [100] tid 102 has"},
		{either, `waits for the other end of a pipe of app [100] tid 101 "worker" or app [100] tid 102`},
		{waitsFor(s, 0, "telepathy", 0), "waits for something that its stack does not tell"},
	} {
		if got := Phrase(c.w, false); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	guess := waitsFor(s, 0, waits.FSFreeze, 0)
	guess.Probably = &kcdata.LinuxMount{Dev: 7, Point: [256]byte{'/', 'd'}}
	if got := Phrase(guess, false); got != "waits for a frozen file system, probably /d" || !Tells(guess) || Tells(waitsFor(s, 0, waits.FSFreeze, 0)) {
		t.Errorf("%q", got)
	}
	if got := Phrase(guess, true); got != "waits for a frozen file system to be thawed" {
		t.Errorf("redacted: %q", got)
	}
	if got := Phrase(waitsFor(s, 0, waits.UserMutex, 3), true); got != "waits for the mutex number 3" {
		t.Errorf("redacted: %q", got)
	}
}

// V1: what is not sure has "probably" in it; what is sure has not.
func TestProbably(t *testing.T) {
	s := scene("a", "b", "c", "d", "e")
	for _, sure := range []bool{true, false} {
		for _, instant := range []bool{true, false} {
			for _, deadlock := range []bool{true, false} {
				a, b := waitsFor(s, 0, waits.Mutex, 1, has(s, 1, waits.Holds)), waitsFor(s, 1, waits.Mutex, 2, has(s, 0, waits.Holds))
				v := &waitgraph.Verdict{Waits: &waits.Waits{OneInstant: instant}}
				confidence := waits.Sure
				if !sure {
					a.Confidence, confidence = waits.Likely, waits.Likely
				}
				finding := Finding{Culprit: &waitgraph.Culprit{Owner: has(s, 1, ""), Reason: waitgraph.Running, Victims: []*waits.Wait{a}}}
				if deadlock {
					if sure && !instant {
						continue // the graph makes none
					}
					finding = Finding{Deadlock: &waitgraph.Deadlock{Confidence: confidence, Cycle: []*waits.Wait{a, b}, Part: []*waits.Wait{a, b}}}
				}
				x := For(&kcdata.Snapshot{}, v)
				for _, text := range []string{x.Sentence(finding), x.Title(finding)} {
					if got := strings.Contains(strings.ToLower(text), "probably"); got == (sure && instant) {
						t.Errorf("sure %v, one instant %v: %q", sure, instant, text)
					}
				}
			}
		}
	}
}

// A cycle names its first threads and counts the others; its age is that of the latest wait.
func TestDeadlockSentences(t *testing.T) {
	s := scene("a", "b", "c", "d", "e")
	v := &waitgraph.Verdict{Waits: &waits.Waits{OneInstant: true}}
	x := For(&kcdata.Snapshot{}, v)
	ring := func(n int) *waitgraph.Deadlock {
		d := &waitgraph.Deadlock{Confidence: waits.Sure}
		for i := range n {
			w := waitsFor(s, i, waits.UserMutex, uint64(i+1), has(s, (i+1)%n, waits.Holds))
			w.Age = model.Age{Ns: uint64(9-i) * 1e9, Known: true}
			d.Cycle = append(d.Cycle, w)
		}
		d.Part = d.Cycle
		return d
	}
	for n, want := range map[int]string{
		1: `Deadlock of 1 thread: app [100] "a" waits for the mutex 0x1 that it holds itself. It has lasted for up to 9.0 s.`,
		3: `Deadlock of 3 threads: app [100] "a" waits for the mutex 0x1 that app [100] tid 101 "b" holds, tid 101 waits for the mutex 0x2 that app [100] tid 102 "c" holds, and tid 102 waits for the mutex 0x3 that tid 100 holds. It has lasted for up to 7.0 s.`,
		5: `Deadlock of 5 threads: app [100] "a" waits for the mutex 0x1 that app [100] tid 101 "b" holds, tid 101 waits for the mutex 0x2 that app [100] tid 102 "c" holds, tid 102 waits for the mutex 0x3 that app [100] tid 103 "d" holds, and so on through 2 more threads, back to the first. It has lasted for up to 5.0 s.`,
	} {
		if got := x.Sentence(Finding{Deadlock: ring(n)}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	d := ring(2)
	d.Cycle[0].Age.Known = false
	d.Part = append(d.Part, waitsFor(s, 2, waits.Mutex, 7))
	d.Behind = d.Cycle[:1]
	if got := x.Sentence(Finding{Deadlock: d}); !strings.HasPrefix(got, "Deadlock of 3 threads") || strings.Contains(got, "lasted") || !strings.HasSuffix(got, " 1 thread waits behind them.") {
		t.Errorf("%q", got)
	}
}

// The worst findings come first, in three sentences at most, and the others are counted.
func TestSummary(t *testing.T) {
	s := scene("a", "b")
	w := waitsFor(s, 0, waits.Mutex, 1, has(s, 1, waits.Holds))
	culprit := func(r waitgraph.Reason) *waitgraph.Culprit {
		return &waitgraph.Culprit{Owner: has(s, 1, ""), Reason: r, Victims: []*waits.Wait{w}}
	}
	v := &waitgraph.Verdict{
		Waits:    &waits.Waits{OneInstant: true},
		Culprits: []*waitgraph.Culprit{culprit(waitgraph.InD), culprit(waitgraph.Stopped)},
		Convoys:  []*waitgraph.Convoy{{Resource: w.Resource, Waiters: []*waits.Wait{w}, Owners: w.Owners}},
	}
	x := For(&kcdata.Snapshot{}, v)
	got := x.Summary(Findings(v, nil), "elsewhere")
	if len(got) != 3 || !strings.Contains(got[0], "(D)") || !strings.HasPrefix(got[1], "Convoy") || !strings.Contains(got[2], "stopped by a signal") {
		t.Errorf("%q", got)
	}
	v.Deadlocks = []*waitgraph.Deadlock{{Confidence: waits.Sure, Cycle: []*waits.Wait{w}, Part: []*waits.Wait{w}}}
	got = x.Summary(Findings(v, nil), "elsewhere")
	if len(got) != SummaryLines || !strings.HasPrefix(got[0], "Deadlock") || got[2] != "And 2 more findings: elsewhere." {
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		recorded, instant bool
		want              string
	}{
		{true, true, "Nothing hangs: no "}, {true, false, "Nothing hangs, as far as"}, {false, true, "Nothing is known to hang"}, {false, false, "Nothing is known to hang"},
	} {
		none := &waitgraph.Verdict{Waits: &waits.Waits{Unrecorded: !c.recorded, OneInstant: c.instant}}
		if got := For(&kcdata.Snapshot{}, none).Summary(nil, ""); len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
	for want, s := range map[string]*kcdata.Snapshot{
		"this file was not read whole":              {Partial: true},
		"this file is of another kernel than Linux": {Tasks: []*kcdata.Task{{ID: 1}}},
	} {
		none := &waitgraph.Verdict{Waits: waits.Of(s)}
		if got := For(s, none).Summary(nil, ""); got[0] != "Nothing is known to hang: "+want+"." {
			t.Errorf("%q", got)
		}
		if limits := none.Waits.Limits; len(limits) == 0 || strings.Contains(strings.Join(limits, ""), "--wait off") || s.OtherKernel() && len(limits) > 1 {
			t.Errorf("%s: %q", want, limits)
		}
	}
}

// Of locks of which it is not known which ones they are the process is named, and what tells more.
func TestQueuedLocks(t *testing.T) {
	s := scene("java", "a")
	for kind, want := range map[waits.Kind][2]string{
		waits.JavaMonitor: {"1 thread at Java monitors of app [100], which nobody is known to hold",
			"1 thread waits for Java monitors of app [100], which nobody is known to hold; `jstack 100` names the holders."},
		waits.ParkingLot: {"1 thread at locks of Rust's parking_lot of app [100], which nobody is known to hold",
			"1 thread waits for locks of Rust's parking_lot of app [100], which nobody is known to hold."},
	} {
		w := waitsFor(s, 0, kind, 0)
		w.Resource = waits.Resource{Kind: kind, Task: w.Task.ID}
		f := Finding{Convoy: &waitgraph.Convoy{Resource: w.Resource, Waiters: []*waits.Wait{w}}}
		x := For(&kcdata.Snapshot{}, &waitgraph.Verdict{})
		if got := [2]string{x.Title(f), x.Sentence(f)}; got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// Who is only likely to hold a lock, held it before a fork, takes a core dump or has not reaped a zombie is named in these words.
func TestOwnersOfOtherKinds(t *testing.T) {
	s := scene("app", "a", "b")
	before := waits.Owner{Tid: 9, Pid: 8, Relation: waits.Holds, Forked: &kcdata.Task{ID: 8, Name: "par"}}
	for _, c := range []struct {
		kind   waits.Kind
		owner  waits.Owner
		likely bool
		want   string
	}{
		{waits.UserOnce, has(s, 1, waits.Holds), true, "waits for the once control 0x10 that app [100] tid 101 \"a\" probably holds"},
		{waits.UserOnce, has(s, 0, waits.Holds), true, "waits for the once control 0x10 that it probably holds itself"},
		{waits.UserMutex, before, false, "waits for the mutex 0x10 that par [8] tid 9 held before a fork"},
		{waits.CoreDump, has(s, 1, waits.Dumps), false, "waits for the core dump of its process, which app [100] tid 101 \"a\" takes"},
		{waits.Namespace, has(s, 1, waits.Reaps), false, "waits for the processes of its pid namespace to end: app [100] tid 101 \"a\" has not reaped a zombie"},
	} {
		w := waitsFor(s, 0, c.kind, 0x10, c.owner)
		if w.Evidence = waits.Stack; c.likely {
			w.Confidence = waits.Likely
		}
		if got := Phrase(w, false); got != c.want {
			t.Errorf("%s: %q, want %q", c.kind, got, c.want)
		}
	}
	if got := Owner(&before); got != "par [8] tid 9 before a fork" {
		t.Errorf("%q", got)
	}
	if got, err := json.Marshal(OwnerJSON(&before)); err != nil || !strings.Contains(string(got), `"before_fork":true`) {
		t.Errorf("%s, %v", got, err)
	}
}

// A convoy whose lock a culprit has is told as that culprit, once, in the convoy's place.
func TestConvoyOfACulprit(t *testing.T) {
	s := scene("db", "a", "b", "c")
	held := func(i int) *waits.Wait { return waitsFor(s, i, waits.Mutex, 1, has(s, 2, waits.Holds)) }
	first, second := held(0), held(1)
	v := func(victims, waiters []*waits.Wait, owners ...waits.Owner) *waitgraph.Verdict {
		return &waitgraph.Verdict{
			Waits:    &waits.Waits{OneInstant: true},
			Culprits: []*waitgraph.Culprit{{Owner: has(s, 2, ""), Reason: waitgraph.Stopped, Victims: victims}},
			Convoys:  []*waitgraph.Convoy{{Resource: first.Resource, Waiters: waiters, Owners: owners}, {Resource: waits.Resource{ID: 9}, Waiters: waiters[:1]}},
		}
	}
	both, holds := []*waits.Wait{first, second}, has(s, 2, waits.Holds)
	for _, c := range []struct {
		name string
		v    *waitgraph.Verdict
		want string
	}{
		{"all are its victims", v(both, both, holds), "culprit convoy"},
		{"one has another culprit", v(both[:1], both, holds), "convoy culprit convoy"},
		{"two owners, of which it is one", v(both, both, holds, has(s, 3, waits.Holds)), "culprit convoy"},
		{"another owner", v(both, both, has(s, 3, waits.Holds)), "culprit convoy convoy"},
		{"no owner", v(both, both), "culprit convoy convoy"},
	} {
		var got []string
		for _, f := range For(&kcdata.Snapshot{}, c.v).Told(nil) {
			if f.Culprit != nil {
				got = append(got, "culprit")
			} else {
				got = append(got, "convoy")
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Of two findings the heavier comes first, whichever way they are asked.
func TestWeight(t *testing.T) {
	second, hour := model.Age{Ns: 1e9, Known: true}, model.Age{Ns: 3600e9, Known: true}
	for _, c := range []struct {
		name           string
		heavy, lighter Weight
	}{
		{"more threads, however young", Weight{Threads: 21, Age: second}, Weight{Threads: 2, Age: hour}},
		{"sure, of like size", Weight{Threads: 20}, Weight{Threads: 60, Unsure: true}},
		{"sixty probably, and one surely", Weight{Threads: 60, Unsure: true}, Weight{Threads: 1}},
		{"D before sleep", Weight{Threads: 2, Age: second}, Weight{Threads: 2, Asleep: true, Age: hour}},
		{"older", Weight{Threads: 2, Age: hour}, Weight{Threads: 2, Age: second}},
		{"an age, and none", Weight{Threads: 2, Age: second}, Weight{Threads: 2}},
		{"its own pipe last", Weight{Threads: 1, Unsure: true, Asleep: true}, Weight{Threads: 30, OwnEnd: true}},
	} {
		if c.heavy.Compare(c.lighter) >= 0 || c.lighter.Compare(c.heavy) <= 0 || c.heavy.Compare(c.heavy) != 0 {
			t.Errorf("%s: %d, %d", c.name, c.heavy.Compare(c.lighter), c.lighter.Compare(c.heavy))
		}
	}
}

// Threads in D for which nobody waits, and that wait at the same place, are told as one finding.
func TestToldByPlace(t *testing.T) {
	mount := func(point string, dev uint64) *waits.OpenFile {
		m := &kcdata.LinuxMount{Dev: dev}
		copy(m.Point[:], point)
		copy(m.FSType[:], "ext4")
		copy(m.Source[:], "/dev/loop0")
		return &waits.OpenFile{File: &kcdata.LinuxFile{Kind: kcdata.FileRegular}, Of: 1, Mount: m}
	}
	s := scene("a", "b", "c", "d")
	v := &waitgraph.Verdict{Waits: &waits.Waits{OneInstant: true}}
	alone := func(i int, w waits.Wait) *waitgraph.Culprit {
		s.Threads[i].Kernel = nil
		if w.Thread != nil {
			s.Threads[i].Kernel = w.Thread.Kernel
		}
		w.Task, w.Thread, w.Age = s, s.Threads[i], model.Age{Ns: uint64(9-i) * 1e9, Known: true}
		return &waitgraph.Culprit{Owner: has(s, i, ""), Wait: &w, Reason: waitgraph.InD}
	}
	data, other := waits.Wait{Kind: waits.FSFreeze, File: mount("/mnt/data", 7)}, waits.Wait{Kind: waits.FSFreeze, File: mount("/mnt/other", 8)}
	for _, c := range []struct {
		name        string
		a, b        waits.Wait
		together    bool
		title, says string
	}{
		{
			"a mount", data, waits.Wait{Kind: waits.FSFreeze, File: mount("/mnt/data", 7), Function: "x"}, true, "2 threads wait in D for /mnt/data (ext4, /dev/loop0, frozen)",
			`2 threads are in uninterruptible sleep (D) and wait for /mnt/data (ext4, /dev/loop0, frozen): app [100] "a" and app [100] tid 101 "b". The longest, tid 100, has waited for up to 9.0 s.`,
		},
		{"a guess is not certain by another's descriptor", data, waits.Wait{Kind: waits.FSFreeze, Probably: data.File.Mount}, false, "", ""},
		{
			"guesses", waits.Wait{Kind: waits.FSFreeze, Probably: data.File.Mount, Function: "x"}, waits.Wait{Kind: waits.FSFreeze, Probably: data.File.Mount}, true,
			"2 threads wait in D for a frozen file system, probably /mnt/data (ext4, /dev/loop0)", "",
		},
		{"another mount", data, other, false, "", ""},
		{"another kind", data, waits.Wait{Kind: waits.Writeback, File: data.File}, false, "", ""},
		{
			"a lock", waits.Wait{Kind: waits.RWSemRead, Resource: waits.Resource{Kind: waits.RWSem, ID: 16}}, waits.Wait{Kind: waits.RWSemWrite, Resource: waits.Resource{Kind: waits.RWSem, ID: 16}}, true,
			"2 threads wait in D for the kernel rwsem 0x10", "",
		},
		{"another lock", waits.Wait{Kind: waits.Mutex, Resource: waits.Resource{ID: 16}}, waits.Wait{Kind: waits.Mutex, Resource: waits.Resource{ID: 17}}, false, "", ""},
		{"a function", waits.Wait{Kind: waits.FileSystem, Function: "jbd2_x"}, waits.Wait{Kind: waits.FileSystem, Function: "jbd2_x"}, true, "2 threads wait in D for their file system, in jbd2_x", ""},
		{"another caller", waits.Wait{Kind: waits.Other, Function: "msleep", Thread: &kcdata.Thread{Kernel: []uint64{1, 2}}}, waits.Wait{Kind: waits.Other, Function: "msleep", Thread: &kcdata.Thread{Kernel: []uint64{1, 3}}}, false, "", ""},
		{"another function", waits.Wait{Kind: waits.Other, Function: "x"}, waits.Wait{Kind: waits.Other, Function: "y"}, false, "", ""},
		{"nothing is known", waits.Wait{Kind: waits.Other}, waits.Wait{Kind: waits.Other}, false, "", ""},
	} {
		v.Culprits = []*waitgraph.Culprit{alone(0, c.a), alone(1, c.b)}
		told := For(&kcdata.Snapshot{}, v).Told(nil)
		if (len(told) == 1) != c.together || len(told) == 0 || told[0].Culprit != v.Culprits[0] || len(told[0].Others) != 2-len(told) {
			t.Errorf("%s: %+v", c.name, told)
			continue
		}
		x := For(&kcdata.Snapshot{}, v)
		if got := x.Title(told[0]); c.together && got != c.title {
			t.Errorf("%s: %q, want %q", c.name, got, c.title)
		}
		if got := x.Sentence(told[0]); c.says != "" && got != c.says {
			t.Errorf("%s: %q, want %q", c.name, got, c.says)
		}
	}
	// Whom others wait for keeps its own finding.
	v.Culprits = []*waitgraph.Culprit{alone(0, data), alone(1, data), alone(2, data), alone(3, other)}
	v.Culprits[1].Victims = []*waits.Wait{waitsFor(s, 3, waits.Mutex, 1, has(s, 1, waits.Holds))}
	if told := For(&kcdata.Snapshot{}, v).Told(nil); len(told) != 3 || len(told[0].Others) != 1 || told[0].Others[0] != v.Culprits[2] || told[1].Culprit != v.Culprits[1] {
		t.Errorf("%+v", told)
	}
}

// Names that no kernel keeps take no more room than others (V2).
func TestLongNames(t *testing.T) {
	s := scene(strings.Repeat("\x1b", 4000))
	s.Name = strings.Repeat("n", 4000)
	if got := Thread(s, s.Threads[0]); len(got) > 2*maxName+20 || !strings.Contains(got, "[100]") || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}
