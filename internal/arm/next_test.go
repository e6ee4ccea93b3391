package arm

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/panicregion"
	"stackshot/internal/testneed"
)

func press(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("/proc/sysrq-trigger", []byte{DefaultKey}, 0); err != nil {
		t.Fatal(err)
	}
}

// Requests that find the region taken are counted and said; the one that was first is saved, and
// the next one after it too. A region that is too small says so, and what it has is whole.
func TestNested(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	a := armed(t, Options{Sysrq: true, UserStacks: bpf.UserOff, Buffer: 128 << 10})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for round := range uint64(2) {
		for range 3 {
			press(t)
		}
		var images int
		var notes []string
		for a.looks.nested != 2*(round+1) || images == 0 {
			e, err := a.Next(ctx)
			if err != nil {
				t.Fatalf("%v: %d images, notes %q, %+v", err, images, notes, a.Tally())
			}
			notes = append(notes, e.Notes...)
			if e.Image == nil {
				continue
			}
			images++
			if w, err := panicregion.ReadWalk(e.Image.Region); err != nil || w.Outcome != panicregion.NoRoom || w.Threads == 0 || w.Bytes > 128<<10 {
				t.Errorf("%+v, %v", w, err)
			}
			if err := e.Image.Free(); err != nil {
				t.Error(err)
			}
		}
		if images != 1 || !strings.Contains(strings.Join(notes, " "), "requests came while") {
			t.Errorf("%d images, notes %q", images, notes)
		}
	}
	if got := a.Tally(); got != (Tally{Captures: 2, Nested: 4}) {
		t.Errorf("%+v", got)
	}
}
