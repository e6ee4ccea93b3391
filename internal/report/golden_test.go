package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// TestGolden holds the text and the JSON of every story against testdata.
// Rewrite with: go test ./internal/report -run TestGolden -update
func TestGolden(t *testing.T) {
	for _, st := range stories {
		t.Run(st.name, func(t *testing.T) {
			var text, js bytes.Buffer
			if err := Text(&text, st.build(), st.o); err != nil {
				t.Fatal(err)
			}
			if err := JSON(&js, st.build(), st.o); err != nil {
				t.Fatal(err)
			}
			golden(t, st.name+".txt", text.Bytes())
			if st.o.Width == 0 && st.name != "dead_nfs_server" {
				golden(t, st.name+".json", js.Bytes())
			}
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}
