package hang

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// form is the JSON as a reader of docs/hang-json.md has it.
type form struct {
	Format    string
	Version   int
	File      *string
	Verdict   []string
	Hangs     bool
	Deadlocks []struct {
		Confidence string
		Cycle      int
		Threads    []struct {
			Tid, Pid int
			Name     string
			WaitsFor struct{ Kind string } `json:"waits_for"`
			Holds    []struct{ Kind, ID string }
		}
		Behind []struct{ Tid int }
	}
	Culprits []struct {
		Tid, Pid, Victims int
		Name, Reason      string
		ToldWith          *int `json:"told_with"`
	}
	Convoys []struct{ Waiters int }
	Waits   []struct {
		Tid, Pid         int
		Kind, Confidence string
	}
	Kinds           []struct{ Threads int }
	ThreadsLeftOut  int `json:"threads_left_out"`
	WaitsLeftOut    int `json:"waits_left_out"`
	FindingsLeftOut int `json:"findings_left_out"`
}

func decode(t testing.TB, b []byte) (f form) {
	t.Helper()
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatalf("%v: %.500s", err, b)
	}
	return f
}

func jsonOf(t *testing.T, w *world, o Options) (form, []byte) {
	t.Helper()
	b := []byte(written(t, "json", w, o))
	return decode(t, b), b
}

// docs/hang-json.md has every key that JSON can write, except those of machine and capture,
// for which it names the report's page.
func TestJSONIsDocumented(t *testing.T) {
	want := golden.ObjectKeys(t, "json.go", "../verdict/json.go", "../verdict/filejson.go")
	for _, m := range [][]waits.Evidence{{waits.Field, waits.Scan, waits.Word, waits.File, waits.After, waits.Stack}} {
		for _, e := range m {
			want = append(want, string(e))
		}
	}
	for _, r := range []waits.Relation{waits.Holds, waits.Last, waits.Child, waits.Joined, waits.Tracer, waits.Execs, waits.Runs, waits.OtherEnd, waits.Listener, waits.Server, waits.Pager} {
		want = append(want, string(r))
	}
	for _, x := range []waits.FileSays{waits.NoEnd, waits.OwnEnd, waits.NotOpened, waits.Elsewhere, waits.NotFound, waits.NotLooked, waits.Serves} {
		want = append(want, string(x))
	}
	for _, w := range []waits.When{waits.Window, waits.NotAtOne, waits.Later} {
		want = append(want, string(w))
	}
	for _, r := range []waitgraph.Reason{
		waitgraph.Running, waitgraph.Runnable, waitgraph.InD, waitgraph.Stopped, waitgraph.Traced, waitgraph.Frozen, waitgraph.Dead,
		waitgraph.Asleep, waitgraph.Outside, waitgraph.MissedCPU,
	} {
		want = append(want, string(r))
	}
	golden.Documented(t, "../../docs/hang-json.md", 60, want)
}

// Each finding has its entry, and each wait.
func TestJSONHoldsAll(t *testing.T) {
	w := everything()
	f, _ := jsonOf(t, w, Options{File: "f"})
	if f.Format != "stackshot-hang" || f.Version != 1 || f.File == nil || *f.File != "f" || !f.Hangs || len(f.Verdict) != 3 {
		t.Errorf("%+v", f)
	}
	if len(f.Deadlocks) != 1 || len(f.Culprits) != 10 || len(f.Convoys) != 1 || len(f.Waits) != len(w.v.Waits.All) {
		t.Errorf("%d deadlocks, %d culprits, %d convoys, %d waits", len(f.Deadlocks), len(f.Culprits), len(f.Convoys), len(f.Waits))
	}
	d := f.Deadlocks[0]
	for i, tid := range []int{813, 814} { // the cycle first, in its order
		if th := d.Threads[i]; th.Tid != tid || th.WaitsFor.Kind != "user_mutex" || len(th.Holds) != 1 || th.Holds[0].ID != []string{"0x55d100", "0x55d0c0"}[i] {
			t.Errorf("%+v", th)
		}
	}
	if d.Confidence != "sure" || d.Cycle != 2 || len(d.Behind) != 14 {
		t.Errorf("%+v", d)
	}
	sum := 0
	for _, k := range f.Kinds {
		sum += k.Threads
	}
	if sum != len(f.Waits) {
		t.Errorf("%d threads by kind, %d waits", sum, len(f.Waits))
	}
	if f.Culprits[0].Reason != "blocked" || f.Culprits[0].Victims != 1 || f.Culprits[0].Tid != 600 {
		t.Errorf("the worst culprit is %+v", f.Culprits[0])
	}
}

// What was not read is absent, and no list is null.
func TestMissingIsAbsent(t *testing.T) {
	w := newWorld()
	w.s = &kcdata.Snapshot{}
	task := w.task(1<<40, "odd")
	w.wait(task, thread(task, 1<<40, ""), waits.Other, 0, 0)
	_, b := jsonOf(t, w, Options{})
	for _, key := range []string{"file", "capture", "tid", "pid", "ns_tids", "resource", "age_at_most_ns", "age_about_ns", "timed", "any_owner", "notes", "waits_left_out"} {
		if strings.Contains(string(b), `"`+key+`":`) {
			t.Errorf("%q is there:\n%s", key, b)
		}
	}
	if bytes.Contains(b, []byte("null")) {
		t.Errorf("a list or a value is null:\n%s", b)
	}
}

// Only shows what concerns its threads: findings in which they have a part, and their waits.
// Nobody's own threads are shown.
func TestPidsChoose(t *testing.T) {
	for _, c := range []struct {
		pids                        []int
		deadlocks, culprits, convoy int
	}{
		{nil, 1, 10, 1}, {[]int{812}, 1, 0, 0}, {[]int{900}, 1, 0, 0}, {[]int{601}, 0, 1, 0}, {[]int{630, 990}, 0, 1, 1}, {[]int{4}, 0, 0, 0},
	} {
		w := everything()
		o := Options{}
		if c.pids != nil {
			o.Only = w.of(c.pids...)
		}
		f, _ := jsonOf(t, w, o)
		if len(f.Deadlocks) != c.deadlocks || len(f.Culprits) != c.culprits || len(f.Convoys) != c.convoy {
			t.Errorf("%v: %d deadlocks, %d culprits, %d convoys", c.pids, len(f.Deadlocks), len(f.Culprits), len(f.Convoys))
		}
		if f.Hangs != (c.deadlocks+c.culprits+c.convoy > 0) {
			t.Errorf("%v: hangs %v", c.pids, f.Hangs)
		}
		for _, x := range f.Waits {
			if c.pids != nil && !slices.Contains(c.pids, x.Pid) {
				t.Errorf("%v: a wait of %d", c.pids, x.Pid)
			}
		}
	}
	w := healthy()
	w.s.Tasks[0].Linux.Present |= kcdata.TaskIsSelf
	if f, _ := jsonOf(t, w, Options{}); len(f.Waits) != 1 || len(f.Kinds) != 1 {
		t.Errorf("our own: %+v", f.Waits)
	}
}

// A thread that is asked for and that no finding concerns has a line, as the report's, within a bound.
func TestAskedFor(t *testing.T) {
	w := healthy()
	app := w.task(800, "app")
	thread(app, 800, "app")
	x := w.wait(app, thread(app, 801, "worker"), waits.UserMutex, 0x10, 7, owner(app, app.Threads[0], waits.Holds))
	for i := range uint64(20) {
		w.single(900+i, "idle")
	}
	for _, c := range []struct {
		only map[*kcdata.Thread]bool
		want string
	}{
		{w.of(701), "Nothing hangs: no deadlock, nobody whom others wait for too long, no convoy.\n\n== ASKED FOR, and no finding concerns them: 1 thread\n  cron [701]: sleeping, no kernel stack recorded, waits for a timer\n\n"},
		{map[*kcdata.Thread]bool{x.Thread: true}, "them: 1 thread\n  app [800] tid 801 \"worker\": sleeping, no kernel stack recorded, waits for the mutex 0x10 that app [800] holds\n\n"},
		{w.of(900, 901, 902, 903, 904, 905, 906, 907, 908, 909, 910, 911, 912, 913, 914, 915, 916), "them: 17 threads\n  idle [900]: sleeping, no kernel stack recorded\n"},
		{w.of(900, 901, 902, 903, 904, 905, 906, 907, 908, 909, 910, 911, 912, 913, 914, 915, 916), "\n  idle [915]: sleeping, no kernel stack recorded\n  and 1 more thread\n\n"},
	} {
		if text := written(t, "txt", w, Options{Only: c.only}); strings.Count(text, c.want) != 1 {
			t.Errorf("not once %q in\n%s", c.want, text)
		}
	}
	w = everything() // one of the two has a part in a finding
	if text := written(t, "txt", w, Options{Only: w.of(601, 4)}); strings.Contains(text, "ASKED FOR") {
		t.Errorf("%s", text)
	}
	idle := w.single(1, "init")
	if text := written(t, "txt", w, Options{Only: map[*kcdata.Thread]bool{w.v.Convoys[0].Waiters[3].Thread: true, idle.Threads[0]: true}}); !strings.Contains(text, "them: 1 thread\n  init [1]: sleeping, no kernel stack recorded\n") {
		t.Errorf("%s", text)
	}
}

// Without a finding that concerns a thread of Only, text says that there are others, and how many
// threads were left out.
func TestTextOfOthers(t *testing.T) {
	w := everything()
	deadlock := w.v.Deadlocks[0]
	for _, c := range []struct {
		only map[*kcdata.Thread]bool
		want []string
	}{
		{w.of(4), []string{"Nothing that hangs concerns the threads asked for.", "12 findings of other threads: not shown.", "== WAITING: 0 threads"}},
		{map[*kcdata.Thread]bool{deadlock.Part[0].Thread: true}, []string{"Deadlock of 2 threads", "11 findings of other threads: not shown.", "== WAITING: 1 thread\n"}},
		{map[*kcdata.Thread]bool{deadlock.Behind[0].Thread: true}, []string{"Deadlock of 2 threads", "== WAITING: 1 thread\n"}},
	} {
		text := written(t, "txt", w, Options{Only: c.only})
		last := fmt.Sprintf("%d of 106 threads not asked for: what concerns only them is not shown\n", 106-len(c.only))
		if !strings.HasSuffix(text, last) {
			t.Errorf("it does not end with %q:\n%s", last, text)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
}
