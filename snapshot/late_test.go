//go:build linux

package snapshot

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/collate"
	"stackshot/internal/engine"
	"stackshot/internal/foreign"
	"stackshot/internal/image"
	"stackshot/internal/report"
	"stackshot/internal/stacks"
	"stackshot/internal/testdelay"
	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// lateWorld are programs held still, and their stacks when no read is late.
type lateWorld struct {
	pids  []int
	order []uint64 // of the tasks in the file
	want  map[uint64]*kcdata.Thread
	limit time.Duration
}

func newLateWorld(t *testing.T) *lateWorld {
	t.Helper()
	requireBPF(t)
	w := &lateWorld{limit: slow(defaultReadLimit)}
	for _, p := range userlab.Start(t, "c", "c++", "node").Processes {
		p.Stop()
		w.pids = append(w.pids, p.Members...)
	}
	_, snap, _ := w.take(t, testdelay.New(t, testdelay.Call{Name: "openat2"}), Options{})
	w.want, w.order = threadsByID(snap), order(snap)
	for id, th := range w.want {
		if th.UserWalk.Flags&(kcdata.UserTablesMissed|kcdata.UserComplete) != kcdata.UserComplete {
			t.Logf("undelayed, %d: %s", id, note(th))
		}
	}
	return w
}

func (w *lateWorld) take(t *testing.T, r *testdelay.Reader, o Options) (*Result, *kcdata.Snapshot, []byte) {
	t.Helper()
	return w.takeHooked(t, r, o, engine.Hooks{})
}

func (w *lateWorld) takeHooked(t *testing.T, r *testdelay.Reader, o Options, h engine.Hooks) (*Result, *kcdata.Snapshot, []byte) {
	t.Helper()
	o.FileReader, o.ReadLimit, o.ArrivalBudget = r.Command, w.limit, time.Second
	s := hooked(t, o, h)
	defer s.Close()
	return captureWhole(t, s, Request{Pids: w.pids})
}

func order(snap *kcdata.Snapshot) (ids []uint64) {
	for _, t := range snap.Tasks {
		ids = append(ids, t.ID)
	}
	return ids
}

// said is what a report says: its alarms, and the notes of each user stack.
type said struct {
	Alarms []string
	Tasks  []struct {
		NotRead []string `json:"not_read"`
		Threads []struct {
			ID        uint64   `json:"tid"`
			UserNotes []string `json:"user_notes"`
		}
	}
}

func says(t *testing.T, snap *kcdata.Snapshot) (s said, notes map[uint64]string) {
	t.Helper()
	var b bytes.Buffer
	if err := report.JSON(&b, snap, report.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	notes = map[uint64]string{}
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			notes[th.ID] = strings.Join(th.UserNotes, "; ")
		}
	}
	return s, notes
}

// different are the threads with another stack than without delay. None of them
// may go without a line of its own.
func (w *lateWorld) different(t *testing.T, snap *kcdata.Snapshot) (ids []uint64) {
	t.Helper()
	_, notes := says(t, snap)
	got := threadsByID(snap)
	for id, want := range w.want {
		th := got[id]
		if th == nil {
			t.Errorf("thread %d is not there", id)
			continue
		}
		if slices.Equal(th.User, want.User) {
			continue
		}
		ids = append(ids, id)
		if !strings.Contains(notes[id], "an unwind table was not read") {
			t.Errorf("thread %d has %d frames of %d, and says %q (%s)", id, len(th.User), len(want.User), notes[id], note(th))
		}
	}
	return ids
}

// raw is how many threads have chain or bytes in the file.
func raw(snap *kcdata.Snapshot) (n int) {
	for _, th := range threadsByID(snap) {
		n += min(1, len(th.UserBytes)+len(th.UserChain))
	}
	return n
}

// Reads of other people's files that are late, and the stacks then.
func TestLateReads(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	w := newLateWorld(t)
	t.Run("one", w.oneLateRead)
	t.Run("file", w.lateFile)
	t.Run("disk", w.deadDisk)
}

// One read that is late, wherever it is, costs a capture time and nothing else:
// the file is asked once more, and every stack is that of a capture where nothing
// is late, in the same place. That is so too where nothing may wait for long.
func (w *lateWorld) oneLateRead(t *testing.T) {
	calls := map[string]testdelay.Call{
		"first open":      {Name: "openat2"},
		"no room to wait": {Name: "pread64"},
	}
	if testneed.Length(false, true) {
		calls["read of the table"] = testdelay.Call{Name: "pread64", Path: "libc.so", After: 6}
		calls["open for a table"] = testdelay.Call{Name: "openat2", Path: "libc.so", After: 1}
		calls["first read"] = testdelay.Call{Name: "pread64"}
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			call.Times, call.By = 1, w.limit+200*time.Millisecond
			r := testdelay.New(t, call)
			began := time.Now()
			var h engine.Hooks
			if name == "no room to wait" {
				h.LateThreads = 1
			}
			_, snap, _ := w.takeHooked(t, r, Options{}, h)
			t.Logf("%v", time.Since(began))
			if got := order(snap); !slices.Equal(got, w.order) {
				t.Errorf("tasks %v, want %v", got, w.order)
			}
			if r.Left(t) != 0 {
				t.Fatal("no read was late")
			}
			said, _ := says(t, snap)
			if ids := w.different(t, snap); len(ids) > 0 || len(said.Alarms) > 0 || raw(snap) > 0 {
				t.Errorf("%d of %d threads have other stacks; alarms %q; %d have bytes", len(ids), len(w.want), said.Alarms, raw(snap))
			}
		})
	}
}

// A file whose every open or read is late is not in the stacks. That is said of
// each and in the report's first lines, and the file has what mends them, unless it
// is redacted. When the file can be read, symbolize --unwind makes them those of a
// capture where nothing is late, and what it made them of goes.
func (w *lateWorld) lateFile(t *testing.T) {
	for _, name := range testneed.Length([]string{"pread64"}, []string{"openat2", "pread64"}) {
		t.Run(name, func(t *testing.T) {
			late := func() *testdelay.Reader {
				return testdelay.New(t, testdelay.Call{Name: name, Path: "libc.so", Times: 1000, By: w.limit + 200*time.Millisecond})
			}
			res, snap, file := w.take(t, late(), Options{})
			ids := w.different(t, snap)
			if len(ids) < len(w.want)/2 {
				t.Errorf("%d of %d threads have other stacks: the test is void", len(ids), len(w.want))
			}
			w.alarmed(t, res, snap)
			for id, th := range threadsByID(snap) {
				short := th.UserWalk.Flags&kcdata.UserTablesMissed != 0
				if kept := len(th.UserBytes)+len(th.UserChain) > 0; kept != short || short != (th.UserWalk.Flags&kcdata.UserKeptToMend != 0) {
					t.Errorf("thread %d: chain or bytes are there: %v (%s)", id, kept, note(th))
				}
			}
			out, sum, err := redo(file, snap, true)
			if err != nil || sum.Short > 0 || sum.Changed < len(ids) {
				t.Fatalf("%+v, %v", sum, err)
			}
			mended, err := parse(t, out)
			if err != nil {
				t.Fatal(err)
			}
			said, _ := says(t, mended)
			if ids := w.different(t, mended); len(ids) > 0 || len(said.Alarms) > 0 || raw(mended) > 0 {
				t.Errorf("mended: %d threads have other stacks; alarms %q; %d have bytes", len(ids), said.Alarms, raw(mended))
			}
			for _, task := range said.Tasks {
				for _, s := range task.NotRead {
					if strings.HasPrefix(s, "unwind table: ") {
						t.Errorf("mended, and %q", s)
					}
				}
			}
			_, snap, _ = w.take(t, late(), Options{Redact: true})
			if n := raw(snap); n > 0 {
				t.Errorf("redacted, and %d threads have bytes", n)
			}
		})
	}
}

// alarmed: what was not read is counted and named, for people and programs.
func (w *lateWorld) alarmed(t *testing.T, res *Result, snap *kcdata.Snapshot) {
	t.Helper()
	said, _ := says(t, snap)
	for _, words := range []string{"unwind tables of 1 file were not read (libc.so.6): callers may be missing in ", "symbolize --unwind"} {
		if !slices.ContainsFunc(said.Alarms, func(s string) bool { return strings.Contains(s, words) }) {
			t.Errorf("the alarms %q do not say %q", said.Alarms, words)
		}
	}
	if !slices.ContainsFunc(res.Warnings, func(w kcdata.Warning) bool { return w.Code == "unwind_tables_missed" }) {
		t.Errorf("warnings %q", res.Warnings)
	}
	var text bytes.Buffer
	if err := report.Text(&text, snap, report.Options{}); err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(text.String(), "stopped for"); !strings.Contains(first, "unwind tables of 1 file") {
		t.Errorf("the first lines are\n%s", first)
	}
	for _, task := range snap.Tasks {
		marked := slices.ContainsFunc(task.Mappings, func(m kcdata.Mapping) bool { return m.Flags&kcdata.MappingTableMissed != 0 })
		named := slices.ContainsFunc(task.EnrichFailed, func(s string) bool {
			return strings.HasPrefix(s, "unwind table: ") && strings.Contains(s, "libc.so")
		})
		short := slices.ContainsFunc(task.Threads, func(th *kcdata.Thread) bool { return th.UserWalk.Flags&kcdata.UserTablesMissed != 0 })
		if marked != short || named != short {
			t.Errorf("%s: mappings marked %v, named %v, stacks short %v", task.Name, marked, named, short)
		}
	}
}

// A disk that does not answer at all, or no more, costs a capture some waits within
// the time for all files, and no stack goes without its line. Of the waits one is a
// perf map's, and one more each is of the end.
func (w *lateWorld) deadDisk(t *testing.T) {
	for _, after := range testneed.Length([]int{5}, []int{0, 5}) {
		r := testdelay.New(t, testdelay.Call{Name: "openat2", After: after, Times: 1000, By: time.Minute})
		var released time.Time
		s := hooked(t, Options{FileReader: r.Command, ReadLimit: w.limit, ArrivalBudget: time.Second},
			engine.Hooks{Released: func() { released = time.Now() }})
		var file bytes.Buffer
		_, err := s.Take(t.Context(), Request{Pids: w.pids, Output: &file})
		took := time.Since(released)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := parse(t, file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		ids := w.different(t, snap)
		t.Logf("after %d answers: %v, %d of %d stacks differ, %d opens", after, took, len(ids), len(w.want), 1000-r.Left(t))
		if waits := 1000 - r.Left(t); waits > 5 || took > collate.BuildIDBudget+collate.UnwindBudget+slow(2*time.Second) {
			t.Errorf("after %d answers: %d waits, %v in all", after, waits, took)
		}
	}
}

func redo(file []byte, snap *kcdata.Snapshot, local bool) ([]byte, stacks.Tally, error) {
	files := foreign.New(foreign.Options{})
	defer files.Close()
	u := stacks.Unwinder{Images: image.New(files, 0), Arch: snap.Arch, Left: slow(time.Minute), Frames: defaultUserFrames}
	return u.Redo(file, snap, local)
}
