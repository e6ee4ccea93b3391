package panicregion

import (
	"strings"
	"testing"
)

// A format that asks for wide numbers does not make a long line; what the kernel's own formats ask for is done.
func TestMessageIsShort(t *testing.T) {
	for format, want := range map[string]string{
		"%099999d %-99999d %.99999d x": "%099999d %-99999d %.99999d x", "at %016llx": "at 0000000000000007", "%#010lx": "0x00000007", "%3d%%": "7%",
	} {
		w := &Walk{Format: format, formatWhole: true, Args: [6]uint64{7, 7, 7}}
		if got := w.Message(); len(got) > 200 || strings.TrimSpace(got) != want {
			t.Errorf("%q: %.100q, %d bytes", format, got, len(got))
		}
	}
}
