package screen

import (
	"strings"
	"testing"

	"stackshot/kcdata"
)

// Each real-time thread that has a CPU has one line, and no line counts it again.
func TestHogHasOneLine(t *testing.T) {
	for _, c := range []struct {
		name, mark string
		hogs       int
		waits      uint64 // behind the first
		starves    uint64 // on another CPU than theirs
	}{
		{"nobody waits", "  ", 2, 0, 0},
		{"one waits", "! ", 1, 300 * ms, 0},
		{"others starve elsewhere", "  ", 1, 0, 3 * sec},
	} {
		m := newMachine(3)
		for i := range uint32(c.hogs) {
			h := m.run(m.proc(77+i, "poll", 1), i, 900*ms)
			h.Linux.Policy, h.Linux.RtPriority = 1, 50
		}
		b := m.proc(800, "batch", 1)
		for i := c.hogs; i < 3; i++ {
			m.run(b, uint32(i), 50*ms)
		}
		if c.waits > 0 {
			m.wait(m.proc(8, "sshd", 1), 0, c.waits)
		}
		if c.starves > 0 {
			m.wait(m.proc(9, "cron", 1), 2, c.starves)
		}
		text := m.text()
		for i := range uint32(c.hogs) {
			name := nameOf(&kcdata.Task{ID: uint64(77 + i), Name: "poll"}, &kcdata.Thread{ID: uint64(77 + i)})
			if strings.Count(text, name) != 1 || !strings.Contains(text, "CPU"+c.mark+" 900 ms  FIFO 50: "+name+" has CPU") {
				t.Errorf("%s: %s\n%s", c.name, name, text)
			}
		}
		if strings.Contains(text, "x poll") || strings.Contains(text, "CPU!   3.0 s  2 threads of batch [800] have 2 of 3 CPUs; cron [9] waits") != (c.starves > 0) {
			t.Errorf("%s:\n%s", c.name, text)
		}
	}
}

// What this program had of the CPUs is said where they are counted, if nobody who is named had
// them without it. No stackshot is accused, be it this one or another.
func TestStackshotIsNotAccused(t *testing.T) {
	const one, both, other = "\nCPU           stackshot itself had CPU 0\n", "\nCPU           stackshot itself had 2 of 2 CPUs\n", "\nCPU           another stackshot had CPU 1\n"
	const make1, hog = "\nCPU           make [7] has 1 of 2 CPUs\n", "\nCPU           stackshot itself had it at the stop\n"
	for _, c := range []struct {
		name string
		says string // of these
		make func(m *machine)
	}{
		{"idle CPUs", "", func(m *machine) { m.own() }},
		{"one", one, func(m *machine) { m.own(0) }},
		{"both", both, func(m *machine) { m.own(0, 1) }},
		{"displaced somebody for a moment", make1, func(m *machine) {
			m.own(0)
			m.run(m.proc(7, "make", 1), 0, 40*ms)
		}},
		{"took its CPU from a hog", hog, func(m *machine) {
			m.own(1)
			h := m.wait(m.proc(77, "poll", 1), 1, ms)
			h.Linux.Policy, h.Linux.RtPriority = 1, 50
			h.Linux.Present |= kcdata.ThreadHasRuntime
			h.Linux.StartBoottime, h.Linux.SumExecRuntime = now-10*sec, 9*sec
		}},
		{"another one", other, func(m *machine) {
			h := m.run(m.proc(60, "stackshot", 1), 1, sec)
			h.Linux.Policy, h.Linux.RtPriority = 2, 98
		}},
		{"another one is a crowd", "", func(m *machine) {
			t, helper := m.proc(60, "stackshot", 1), m.proc(61, "exe", 60)
			for range 40 {
				m.wait(t, 1, 200*ms)
				m.wait(helper, 1, 200*ms)
			}
		}},
	} {
		m := newMachine(2)
		for i := range m.s.CPUs {
			m.s.CPUs[i].Flags &^= kcdata.CPUIdle
		}
		c.make(m)
		for i := range uint32(2) {
			m.wait(m.proc(800+i, "batch", 1), 1, 30*ms)
		}
		text := m.text()
		for _, words := range []string{one, both, other, make1, hog} {
			if strings.Contains(text, words) != (words == c.says) {
				t.Errorf("%s: want %q:\n%s", c.name, c.says, text)
			}
		}
		if strings.Contains(text, "stackshot [") || strings.Contains(text, "exe") || strings.Contains(text, "x stackshot") || strings.Contains(text, "!") || c.says != "" && c.says != hog && !strings.Contains(text, "2 x batch [800] wait for 2 CPUs") {
			t.Errorf("%s:\n%s", c.name, text)
		}
	}
}
