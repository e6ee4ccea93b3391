package screen

import (
	"strings"
	"testing"
)

// All CPUs have been busy for long. Who waits for less than a turn is not named, whoever has them.
func TestNobodyIsMissedWithinATurn(t *testing.T) {
	for age, named := range map[uint64]bool{ms / 5: false, turnNs - 1: false, turnNs: true, 15 * ms: true} {
		m := newMachine(2)
		b := m.proc(800, "batch", 2)
		m.run(b, 0, 50*ms)
		m.run(b, 1, 50*ms)
		m.wait(m.proc(812, "nginx", 1), 1, age)
		text := m.text()
		if !strings.Contains(text, "2 of 2 CPUs") || strings.Contains(text, "nginx [812] waits") != named {
			t.Errorf("%d ns, to be named: %v:\n%s", age, named, text)
		}
	}
}

// Who has waited longest is named, of the command that has the CPUs too: a younger wait of
// another command does not take its place, an equal one does.
func TestTheLongestWaitIsNamed(t *testing.T) {
	for _, c := range []struct {
		batch, nginx uint64
		want         string
	}{
		{540 * ms, 4 * ms, "batch [800] waits up to 540 ms"},
		{540 * ms, turnNs - 1, "batch [800] waits up to 540 ms"},
		{4 * ms, 540 * ms, "nginx [812] waits up to 540 ms"},
		{540 * ms, 540 * ms, "nginx [812] waits up to 540 ms"},
		{turnNs - 1, ms / 5, ""},
	} {
		m := newMachine(2)
		b := m.proc(800, "batch", 2)
		m.wait(b, 1, c.batch)
		m.run(b, 0, 50*ms)
		m.run(b, 1, 50*ms)
		m.wait(m.proc(812, "nginx", 1), 1, c.nginx)
		text := m.text()
		if !strings.Contains(text, "of 2 CPUs") || c.want == "" && strings.Contains(text, " waits ") || !strings.Contains(text, c.want) {
			t.Errorf("%d and %d ns, want %q:\n%s", c.batch, c.nginx, c.want, text)
		}
	}
}
