package latency

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/kcdata"
)

// TestJSONIsDocumented: docs/latency-json.md mentions every key, and every value
// of "name", "unit", "outcome" and "method".
func TestJSONIsDocumented(t *testing.T) {
	want := []string{UnitNs, UnitCount, "in_window", "after", "unknown"}
	for code := range uint32(6) {
		want = append(want, outcome(code))
	}
	for _, m := range overFiles {
		want = append(want, m.name)
	}
	f := Measure("f", decoded(t, loaded()), 1, nil)
	for _, list := range [][]Dist{f.Tasks.Dists, f.Threads.Dists, f.Sched.RunDelay.Dists, {f.Sched.Waiting.Dist, f.Sched.Blocked.Dist, f.Sched.Sleeping.Dist}} {
		for _, d := range list {
			want = append(want, d.Name)
		}
	}
	want = append(want, golden.Keys(reflect.TypeFor[Figures]())...)
	want = append(want, golden.Keys(reflect.TypeFor[Series]())...)
	want = append(want, golden.ObjectKeys(t, "pause.go", "figures.go")...)
	b, err := json.Marshal(phasesOf(&kcdata.LinuxPhases{Present: kcdata.PhasesHaveUnwind | kcdata.PhasesHaveCycles}))
	keys := map[string]any{}
	if err = errors.Join(err, json.Unmarshal(b, &keys)); err != nil {
		t.Fatal(err)
	}
	want = slices.AppendSeq(want, maps.Keys(keys))
	golden.Documented(t, "../../docs/latency-json.md", 120, want)
}

// TestMissingIsAbsent (L1): what a file does not hold has no key, and no zero.
func TestMissingIsAbsent(t *testing.T) {
	for _, c := range []struct {
		build  func() []byte
		absent []string
	}{
		{empty, []string{"pause", "realtime_ns", "hostname"}},
		{fromProc, []string{"phases_sum", "cost", "last_cpu", "request_to_stop_ns", "unwind_ns", "at_most_ns"}},
		{plain, []string{"atomicity", "unwind_ns", "cycles", "unwind_share", "unwind_per_thread_ns", "request_to_stop_ns"}},
	} {
		var b bytes.Buffer
		if err := JSON(&b, []*Figures{Measure("f", decoded(t, c.build()), 10, nil)}, nil, new(Waits), 10); err != nil {
			t.Fatal(err)
		}
		for _, key := range c.absent {
			if strings.Contains(b.String(), `"`+key+`":`) {
				t.Errorf("%q is there:\n%s", key, b.String())
			}
		}
		if strings.Contains(b.String(), ": null") {
			t.Errorf("a list or a value is null:\n%s", b.String())
		}
	}
}

// TestNothingStoppedCountsNowhere: a file of /proc has no pause, which is not a
// pause of 0 ns.
func TestNothingStoppedCountsNowhere(t *testing.T) {
	files := []*Figures{Measure("a", decoded(t, loaded()), 1, nil), Measure("b", decoded(t, fromProc()), 1, nil), Measure("c", decoded(t, empty()), 1, nil)}
	for _, d := range Over(files) {
		want := map[string]int{"tries": 2, "threads_ran": 2, "lost_ns": 2}[d.Name]
		if want == 0 {
			want = 1
		}
		if d.Count != want {
			t.Errorf("%s counts %d files, want %d", d.Name, d.Count, want)
		}
	}
}

// TestFailedFilesAreNamed: in the JSON, cleaned.
func TestFailedFilesAreNamed(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, nil, []Failed{{"a\x1b", "offset 0x0: no"}}, new(Waits), 10); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Files  []any
		Failed []Failed
	}
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if d.Files == nil || len(d.Failed) != 1 || d.Failed[0] != (Failed{`a\x1b`, "offset 0x0: no"}) {
		t.Errorf("%s", b.String())
	}
}

func TestWriteErrorsComeBack(t *testing.T) {
	s := decoded(t, loaded())
	files := []*Figures{Measure("f", s, 10, nil)}
	golden.ErrorsComeBack(t, "text", func(w io.Writer) error { return Text(w, files, TextOptions{Top: 10}) })
	golden.ErrorsComeBack(t, "JSON", func(w io.Writer) error { return JSON(w, files, nil, new(Waits), 10) })
	golden.ErrorsComeBack(t, "trace", func(w io.Writer) error { return TraceText(w, s, 0) })
}

// Figures of some threads: those of their tasks and of them, and how many are not among them.
func TestOnly(t *testing.T) {
	s := decoded(t, loaded())
	task := s.Tasks[slices.IndexFunc(s.Tasks, func(t *kcdata.Task) bool { return t.Latency != nil && len(t.Threads) > 0 })]
	f := Measure("f", s, 10, map[*kcdata.Thread]bool{task.Threads[0]: true})
	if f.Tasks.Measured != 1 || f.Threads.Measured > 1 || f.Sched.NotAsked != s.ThreadCount()-1 || f.Pause == nil {
		t.Errorf("%+v", f)
	}
	var b bytes.Buffer
	if err := Text(&b, []*Figures{f}, TextOptions{Top: 10}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "threads not asked for") {
		t.Errorf("the last line is %q", last)
	}
}
