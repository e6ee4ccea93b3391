package latency

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

var notANumber = regexp.MustCompile(`\b(NaN|[+-]?Inf)\b|%!`)

// checkFile: whatever the file, no panic, nothing raw, nothing that is not a
// number, no line wider than the terminal, JSON that reads back.
func checkFile(t *testing.T, s *kcdata.Snapshot, width, top int) {
	t.Helper()
	f := Measure("file", s, top, nil)
	for _, files := range [][]*Figures{{f}, {f, f}} {
		var text, js bytes.Buffer
		if err := Text(&text, files, TextOptions{Width: width, Top: top}); err != nil {
			t.Fatal(err)
		}
		if err := JSON(&js, files, []Failed{{"x\x1b", "y\x1b"}}, new(Waits), 10); err != nil {
			t.Fatal(err)
		}
		golden.Showable(t, text.Bytes())
		golden.Showable(t, js.Bytes())
		if !json.Valid(js.Bytes()) {
			t.Fatalf("not JSON: %s", js.Bytes())
		}
		if m := notANumber.Find(text.Bytes()); m != nil && !namesHold(s, string(m)) {
			t.Fatalf("%q in the output:\n%s", m, text.Bytes())
		}
		for line := range strings.Lines(text.String()) {
			if n := show.Cells(strings.TrimSuffix(line, "\n")); width >= 40 && n > width {
				t.Fatalf("line of %d cells at width %d: %q", n, width, line)
			}
		}
	}
}

// namesHold reports whether a word of the output may come from a name.
func namesHold(s *kcdata.Snapshot, word string) bool {
	names := []string{s.Hostname, s.Release, s.Engine, s.Isolation, s.Request}
	for _, t := range s.Tasks {
		names = append(names, t.Name)
		for _, th := range t.Threads {
			names = append(names, th.Name, th.Wchan)
			for _, a := range th.Kernel {
				sym, _ := s.Symbols.Name(a)
				names = append(names, sym.Name)
			}
		}
	}
	return strings.Contains(strings.Join(names, "\n"), word)
}

// FuzzLatency reads any bytes as a file.
func FuzzLatency(f *testing.F) {
	for _, st := range stories {
		f.Add(st.build(), 80, 3)
	}
	f.Add(loaded(), 0, 1)
	f.Fuzz(func(t *testing.T, file []byte, width, top int) {
		s, _ := kcdata.ParseSnapshot(file)
		if s == nil {
			return
		}
		checkFile(t, s, width%500, top)
		var trace bytes.Buffer
		if err := TraceText(&trace, s, width%500); (err == nil) != (len(s.Trace) > 0) {
			t.Fatalf("%d events: %v", len(s.Trace), err)
		}
		golden.Showable(t, trace.Bytes())
	})
}

// TestStoriesAreShowable runs what the fuzzer starts from, at every width.
func TestStoriesAreShowable(t *testing.T) {
	for _, st := range stories {
		s := decoded(t, st.build())
		for _, width := range []int{0, 1, 10, 40, 80, 200} {
			checkFile(t, s, width, 3)
		}
	}
}
