package snapshot

import (
	"strings"
	"testing"
	"time"

	"stackshot/internal/capture"
)

// A try begins anew, so it comes only if it has more time than the last one took.
func TestNoTryWithLessTime(t *testing.T) {
	for _, c := range []struct {
		stopped, last time.Duration // of a pause of 100 ms
		is            bool
	}{
		{10, 10, false}, {49, 49, false}, {50, 50, true}, {84, 84, true}, {100, 100, true}, {130, 130, true},
		{60, 30, false}, {80, 30, true},
	} {
		a := &capturing{session: &Session{options: Options{MaxPause: 100 * time.Millisecond}}, stopped: c.stopped * time.Millisecond}
		raw := &capture.Raw{}
		if got := a.isLastChance(raw, c.last*time.Millisecond); got != c.is {
			t.Errorf("after %d ms, the last try %d ms: %v", c.stopped, c.last, got)
		}
		if said := len(raw.Warnings) == 1 && raw.Warnings[0].Code == "no_second_try" && strings.Contains(raw.Warnings[0].Text, "--max-pause leaves"); said != c.is {
			t.Errorf("after %d ms: warnings %+v", c.stopped, raw.Warnings)
		}
	}
}
