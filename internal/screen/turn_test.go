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
