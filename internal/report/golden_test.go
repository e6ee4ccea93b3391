package report

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/kcdata"
)

// TestGolden holds the forms of some stories against testdata, and the text of the others against
// what it must say. Rewrite with: go test ./internal/report -run TestGolden -update
func TestGolden(t *testing.T) {
	write := map[string]func(io.Writer, *kcdata.Snapshot, Options) error{"txt": Text, "json": JSON, "folded": Folded}
	for _, st := range stories {
		for _, form := range strings.Fields(st.golden) {
			var b bytes.Buffer
			if err := write[form](&b, st.build(), st.o); err != nil {
				t.Fatal(err)
			}
			golden.Want(t, "testdata/"+st.name+"."+form, b.Bytes())
		}
		text := textOf(t, st.build(), st.o)
		for _, words := range st.says {
			if n := strings.Count(text, words); n != 1 {
				t.Errorf("%s: %q is there %d times in\n%s", st.name, words, n, text)
			}
		}
	}
}
