package latency

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"stackshot/internal/golden"
)

// TestGolden holds the text of every story against its words, and of one text, JSON, trace and the text
// of several files against testdata. Rewrite with: go test ./internal/latency -run TestGolden -update
func TestGolden(t *testing.T) {
	var all []*Figures
	for _, st := range stories {
		all = append(all, Measure(st.name+".kcdata", decoded(t, st.build()), 10, nil))
		var text bytes.Buffer
		if err := Text(&text, all[len(all)-1:], TextOptions{Top: 10}); err != nil {
			t.Fatal(err)
		}
		if st.says == nil {
			golden.Want(t, "testdata/"+st.name+".txt", text.Bytes())
		}
		for _, words := range st.says {
			if n := strings.Count(text.String(), words); n != 1 {
				t.Errorf("%s: %q is there %d times in\n%s", st.name, words, n, &text)
			}
		}
	}
	s := decoded(t, loaded())
	first := s.Trace[0] // it is not the first in time
	var js, several, trace bytes.Buffer
	err := errors.Join(JSON(&js, all[:1], nil, new(Waits), 10), Text(&several, all, TextOptions{Top: 10}), TraceText(&trace, s, 0))
	if err != nil || s.Trace[0] != first {
		t.Fatal("the snapshot was changed, or: ", err)
	}
	golden.Want(t, "testdata/loaded.json", js.Bytes())
	golden.Want(t, "testdata/several.txt", several.Bytes())
	golden.Want(t, "testdata/trace.txt", trace.Bytes())
	if err := TraceText(&trace, decoded(t, plain()), 0); !errors.Is(err, ErrNoTrace) {
		t.Errorf("a file without a trace: %v", err)
	}
}
