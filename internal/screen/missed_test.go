package screen

import (
	"strings"
	"testing"

	"stackshot/kcdata"
)

// Idle are the CPUs that the stop found idle, not their idle threads, of which each CPU has one.
func TestIdleCPUs(t *testing.T) {
	for n, want := range []string{"", ", 1 of 2 CPUs idle", ", 2 of 2 CPUs idle"} {
		c := quiet()
		s := c.done()
		for i := range s.CPUs {
			s.CPUs[i].Flags &^= kcdata.CPUIdle
			if i < n {
				s.CPUs[i].Flags |= kcdata.CPUIdle
			}
		}
		text := textOf(t, s, Options{Verdict: c.v})
		if strings.Count(text, "CPUs idle") != min(n, 1) || !strings.Contains(text, want) {
			t.Errorf("%d idle:\n%s", n, text)
		}
	}
}

// What a CPU ran that did not stop is named once, and is what to look at first.
func TestSuspectIsNamedOnce(t *testing.T) {
	c := missed()
	s := c.done()
	text := textOf(t, s, Options{Verdict: c.v, File: file})
	if strings.Count(text, "[640]") != 1 || strings.Count(text, "--pid 640 ") != 1 {
		t.Errorf("%s", text)
	}
	if b := Brief(s, c.v); !strings.Contains(b, "irq/55-mlx5 [640]") {
		t.Errorf("brief %q", b)
	}
}
