package latency

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// Figures of some threads: those of their tasks and of them, and how many are not among them.
func TestOnly(t *testing.T) {
	s := decoded(t, loaded())
	task := s.Tasks[slices.IndexFunc(s.Tasks, func(t *kcdata.Task) bool { return t.Latency != nil && len(t.Threads) > 0 })]
	f := Measure("f", s, 10, map[*kcdata.Thread]bool{task.Threads[0]: true})
	if f.Tasks.Measured != 1 || f.Threads.Measured > 1 || f.Sched.NotAsked != s.ThreadCount()-1 || f.Pause == nil {
		t.Errorf("%+v", f)
	}
	var b bytes.Buffer
	if err := Text(&b, []*Figures{f}, TextOptions{Top: 10}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "threads not asked for") {
		t.Errorf("the last line is %q", last)
	}
}
