package hang

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/waitgraph"
	"stackshot/kcdata"
)

var forms = map[string]func(io.Writer, *kcdata.Snapshot, *waitgraph.Verdict, Options) error{"txt": Text, "json": JSON, "dot": Dot}

// written is a form of what a world is told of.
func written(t *testing.T, form string, w *world, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := forms[form](&b, w.s, w.v, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGolden holds the forms of some stories against testdata, and the text of the others against what
// it must say. Rewrite with: go test ./internal/hang -run TestGolden -update
func TestGolden(t *testing.T) {
	for _, st := range stories {
		for _, form := range strings.Fields(st.golden) {
			golden.Want(t, "testdata/"+st.name+"."+form, []byte(written(t, form, st.build(), st.o)))
		}
		text := written(t, "txt", st.build(), st.o)
		for _, words := range st.says {
			if n := strings.Count(text, words); n != 1 {
				t.Errorf("%s: %q is there %d times in\n%s", st.name, words, n, text)
			}
		}
	}
}
