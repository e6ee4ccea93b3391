package account

import (
	"strings"
	"testing"

	"stackshot/kcdata"
)

func TestPanicTitle(t *testing.T) {
	p := &kcdata.LinuxPanic{Cause: kcdata.PanicByPanic, CPU: 1, Tid: 123, Comm: [16]byte{'b', 'a', 's', 'h'}, Message: [256]byte{'o', 'o', 'p', 's', 0x1b}}
	s := &kcdata.Snapshot{Panic: p}
	for _, c := range []struct {
		change func()
		want   string
	}{
		{func() {}, `kernel panic: oops\x1b, on CPU 1 by bash [123]`},
		{func() { p.Tid, p.Message = 0, [256]byte{} }, "kernel panic, on CPU 1 by its idle thread"},
		{func() { p.Cause, p.Key, p.Tid = kcdata.PanicBySysrq, 'y', 7 }, "by SysRq y, on CPU 1 by bash [7]"},
		{func() { p.Key, p.Cause = 1, kcdata.PanicBySysrq }, "by SysRq 0x1, on CPU 1 by bash [7]"},
		{func() { p.Cause = kcdata.PanicByCrash }, "kernel crash, on CPU 1 by bash [7]"},
	} {
		c.change()
		if got := PanicTitle(s); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if PanicTitle(&kcdata.Snapshot{}) != "" || PanicLimits(&kcdata.Snapshot{}) != nil || PanicJSON(&kcdata.Snapshot{}) != nil {
		t.Error("a file of no panic says something of one")
	}
}

// Everything that a panic's records may lack has a sentence with its number.
func TestPanicLimits(t *testing.T) {
	p := &kcdata.LinuxPanic{Outcome: kcdata.PanicWhole}
	s := &kcdata.Snapshot{Panic: p}
	if got := PanicLimits(s); len(got) > 0 {
		t.Errorf("%q of a whole one", got)
	}
	for want, change := range map[string]func(){
		"did not come to the end": func() { p.Outcome, p.Threads = kcdata.PanicInProgress, 41 }, "41 threads": func() { p.Outcome, p.Threads = kcdata.PanicNoRoom, 41 },
		"the time for the records was up": func() { p.Outcome = kcdata.PanicOutOfTime }, "not known (9)": func() { p.Outcome = 9 },
		"are damaged in the dump": func() { p.Flags = kcdata.PanicTorn }, "43 pages": func() { p.PagesLost = 43 }, "44 pages": func() { p.PagesAbsent = 44 },
		"45 more calls": func() { p.Nested = 45 }, "46 SysRqs": func() { p.Lost = 46 },
	} {
		*p = kcdata.LinuxPanic{Outcome: kcdata.PanicWhole}
		change()
		if got := PanicLimits(s); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPanicStill(t *testing.T) {
	on := func(cpu uint32, present uint64) *kcdata.Thread {
		return &kcdata.Thread{HasLinux: true, Linux: kcdata.LinuxThread{OnCPU: 1, CPU: cpu, Present: present}}
	}
	s := &kcdata.Snapshot{Panic: &kcdata.LinuxPanic{CPU: 1}, Tasks: []*kcdata.Task{{Threads: []*kcdata.Thread{on(0, 0), on(1, 0), on(2, kcdata.ThreadIsIdle)}}}}
	if got := PanicStill(s); got != "nothing was stopped: CPU 1 recorded all threads one after the other; 1 thread ran on other CPUs, without a stack here" {
		t.Error(got)
	}
}
