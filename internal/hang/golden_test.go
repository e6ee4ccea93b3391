package hang

import (
	"bytes"
	"testing"

	"stackshot/internal/golden"
)

// TestGolden holds text, JSON and graph of every story against testdata. Rewrite with:
// go test ./internal/hang -run TestGolden -update
func TestGolden(t *testing.T) {
	for _, st := range stories {
		t.Run(st.name, func(t *testing.T) {
			w := st.build()
			var text, js, dot bytes.Buffer
			if err := Text(&text, w.s, w.v, st.o); err != nil {
				t.Fatal(err)
			}
			golden.Want(t, "testdata/"+st.name+".txt", text.Bytes())
			if st.name != "abba" && st.name != "everything_pid" && st.name != "unrecorded" && st.name != "ends" {
				return
			}
			if err := JSON(&js, w.s, w.v, st.o); err != nil {
				t.Fatal(err)
			}
			if err := Dot(&dot, w.s, w.v, st.o); err != nil {
				t.Fatal(err)
			}
			golden.Want(t, "testdata/"+st.name+".json", js.Bytes())
			golden.Want(t, "testdata/"+st.name+".dot", dot.Bytes())
		})
	}
}
