package strtab

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"stackshot/internal/testneed"
)

// at reads a table as the format's reader does.
func at(b []byte, off uint32) string {
	if off == 0 {
		return ""
	}
	s, _, _ := bytes.Cut(b[off:], []byte{0})
	return string(s)
}

// Whatever is added is read back as Clip has it, twice the same is once there,
// and what a table began with stays where it was.
func TestReadBack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, old := range []string{"", "\x00", "\x00a\x00bb\x00", "x", "\x00unended"} {
		s := Over([]byte(old))
		offs := map[string]uint32{}
		for range 300 {
			text := strings.Repeat("aü\x00b"[:1+rnd.IntN(5)], rnd.IntN(3)) + strings.Repeat("z", rnd.IntN(4)*1400)
			off := s.Add(text)
			if prev, ok := offs[text]; ok && prev != off {
				t.Fatalf("%.20q at %d and %d", text, prev, off)
			}
			offs[text] = off
		}
		for text, off := range offs {
			if got := at(s.Bytes(), off); got != Clip(text) {
				t.Errorf("%.20q (%d bytes) is read as %.20q", text, len(text), got)
			}
		}
		if !bytes.HasPrefix(s.Bytes(), []byte(old)) || s.Bytes()[len(s.Bytes())-1] != 0 {
			t.Errorf("over %q: %.40q", old, s.Bytes())
		}
	}
	if s := Over([]byte("\x00a\x00bb\x00")); s.Add("bb") != 3 || s.Add("") != 0 || s.Add("\x00x") != 0 || len(s.Bytes()) != 6 {
		t.Errorf("%q", s.Bytes())
	}
}

func TestClip(t *testing.T) {
	for n := maxString - 5; n < maxString+5; n++ {
		text := strings.Repeat("a", n) + "üü"
		got := Clip(text)
		if len(got) > maxString || !strings.HasPrefix(text, got) || !utf8.ValidString(got) || len(got) < min(len(text), maxString-1) {
			t.Errorf("%d a: %d bytes, %.10q", n, len(got), got[len(got)-4:])
		}
	}
}

// A table that is full takes no more text, but knows what it has.
func TestFullTable(t *testing.T) {
	testneed.Slow(t)
	s := Over(make([]byte, maxTable-10))
	last := s.Add("last")
	if got := s.Add("no room"); last == 0 || got != 0 || len(s.Bytes()) > maxTable {
		t.Errorf("at %d and %d, of %d bytes", last, got, len(s.Bytes()))
	}
	if again := s.Add("last"); again != last {
		t.Errorf("at %d, then at %d", last, again)
	}
}
