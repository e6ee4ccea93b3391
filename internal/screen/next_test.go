package screen

import (
	"strings"
	"testing"

	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// The commands alone are those of the screen, by the words that start the program; without a file
// there are none.
func TestNext(t *testing.T) {
	s := &kcdata.Snapshot{}
	o := Options{Verdict: &waitgraph.Verdict{Waits: &waits.Waits{Of: map[*kcdata.Thread]*waits.Wait{}}, Convoys: []*waitgraph.Convoy{{}}}}
	for _, c := range []struct{ program, file, want string }{
		{"", "f", "  stackshot hang f   # who waits for whom\n  stackshot report f   # all stacks\n"},
		{"sudo ./stackshot", "/dev/shm/a b", "  sudo ./stackshot hang '/dev/shm/a b'   # who waits for whom\n  sudo ./stackshot report '/dev/shm/a b'   # all stacks\n"},
		{"stackshot", "", ""},
	} {
		o.Program, o.File = c.program, c.file
		var alone, screen strings.Builder
		if err := Next(&alone, s, o); err != nil || alone.String() != c.want {
			t.Errorf("%v, %q, want %q", err, alone.String(), c.want)
		}
		if err := Text(&screen, s, o); err != nil || !strings.HasSuffix(screen.String(), c.want) || strings.Contains(screen.String(), " report ") != (c.file != "") {
			t.Errorf("%v, %s", err, screen.String())
		}
	}
}
