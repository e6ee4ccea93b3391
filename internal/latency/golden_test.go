package latency

import (
	"bytes"
	"errors"
	"testing"

	"stackshot/internal/golden"
)

// TestGolden holds text and JSON of every story against testdata. Rewrite with:
// go test ./internal/latency -run TestGolden -update
func TestGolden(t *testing.T) {
	var all []*Figures
	for _, st := range stories {
		t.Run(st.name, func(t *testing.T) {
			f := Measure(st.name+".kcdata", decoded(t, st.build()), st.o.Top, nil)
			var text bytes.Buffer
			if err := Text(&text, []*Figures{f}, st.o); err != nil {
				t.Fatal(err)
			}
			golden.Want(t, "testdata/"+st.name+".txt", text.Bytes())
			if st.o.Width == 0 {
				all = append(all, f)
				var js bytes.Buffer
				if err := JSON(&js, []*Figures{f}, nil, new(Waits), 10); err != nil {
					t.Fatal(err)
				}
				golden.Want(t, "testdata/"+st.name+".json", js.Bytes())
			}
		})
	}
	var text bytes.Buffer
	if err := Text(&text, all, TextOptions{Top: 10}); err != nil {
		t.Fatal(err)
	}
	golden.Want(t, "testdata/several.txt", text.Bytes())
}

func TestTraceGolden(t *testing.T) {
	var text bytes.Buffer
	if err := TraceText(&text, decoded(t, loaded()), 0); err != nil {
		t.Fatal(err)
	}
	golden.Want(t, "testdata/trace.txt", text.Bytes())
	if err := TraceText(&text, decoded(t, plain()), 0); !errors.Is(err, ErrNoTrace) {
		t.Errorf("a file without a trace: %v", err)
	}
}
