package show

import (
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/testneed"
)

// A line is cut, a sentence is wrapped behind its first words, and neither ends in spaces.
func TestPage(t *testing.T) {
	var got []string
	p := Page{Width: 24, Put: func(line string) { got = append(got, line) }}
	p.Line("%s   ", "a line that is cut at the end of the page")
	p.Line("  short  ")
	p.Words("!! ", "a sentence of which no word is %s", "lost")
	p.Wrap = true
	p.Line("  app [7]  of /data   ")
	p.Line("  app [7] waits for /data (ext4)")
	p.Line("%s", strings.Repeat("y", 30))
	p.Width, p.Wrap = 4, false // too narrow for sentences
	p.Words("", "twenty cells at the least")
	p.Width = 0
	p.Line("%s", strings.Repeat("x", 300))
	want := []string{
		"a line that is cut at...", "  short", "!! a sentence of which", "   no word is lost",
		"  app [7]  of /data", "  app [7] waits for", "      /data (ext4)", strings.Repeat("y", 20), "    " + strings.Repeat("y", 10),
		"twenty cells at the", "least", strings.Repeat("x", 300),
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q,\nwant %q", got, want)
	}
}

// Empty parts and parts whose condition does not hold are left out.
func TestParts(t *testing.T) {
	var p Parts
	if p.Join(", ") != "" {
		t.Error("no parts, and a text")
	}
	p.Add("%s", "")
	p.Add("%d of %d", 1, 2)
	p.If(false, "never")
	p.If(true, "%s", "")
	p.If(true, "last")
	if got := p.Join(", "); got != "1 of 2, last" {
		t.Errorf("%q", got)
	}
}

// A word of a hostile file is wrapped in time that grows with its length, not with its
// square: that took a minute.
func TestWrapOfALongWord(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	begin := time.Now()
	if lines := Wrap(strings.Repeat("x", 1<<20), 20); len(lines) != (1<<20+19)/20 {
		t.Errorf("%d lines", len(lines))
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
