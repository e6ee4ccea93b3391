package screen

import (
	"strings"
	"testing"
)

// A crowd is called a fork storm if the machine makes many pids, or if more of it are young than
// any service starts at once.
func TestForkStorm(t *testing.T) {
	for _, c := range []struct {
		name     string
		n        uint32
		age, gap uint64 // between two starts
		pids     uint32 // that were given meanwhile
		want     bool
	}{
		{"24 that were started together", 24, 500 * ms, 0, 1, false},
		{"500 that were started together", 500, 500 * ms, 0, 1, true},
		{"499 that were started together", 499, 500 * ms, 0, 1, false},
		{"1,000 pids a second", 24, 500 * ms, 10 * ms, 10, true},
		{"900 pids a second", 24, 500 * ms, 10 * ms, 9, false},
		{"old ones", 24, 1500 * ms, 10 * ms, 10, false},
	} {
		m := newMachine(2)
		for i := range c.n {
			p := m.proc(20_000+i*c.pids, "work", 700)
			p.Linux.StartBoottime = now - c.age + uint64(i)*c.gap
			m.wait(p, i%2, 30*ms)
		}
		text := m.text()
		if strings.Contains(text, "fork storm") != c.want || !strings.Contains(text, "runnable threads are work") {
			t.Errorf("%s:\n%s", c.name, text)
		}
	}
}
