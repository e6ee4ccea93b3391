package model

import (
	"math/rand/v2"
	"testing"

	"stackshot/kcdata"
)

const hasStamps = kcdata.ThreadHasSchedInfo

// TestAges: ages count in the runqueue clock of the thread's own CPU, are those
// at the stop, are about where that CPU left no pair, and are absent where the two
// do not belong together.
func TestAges(t *testing.T) {
	s := &kcdata.Snapshot{CPUs: []kcdata.LinuxCPU{
		{CPU: 0, RqClock: 1000, RqClockAt: 70_000}, {CPU: 1, RqClock: 5000, RqClockAt: 70_000}, {CPU: 2},
		{CPU: 3, RqClock: 1000}, {CPU: 4, RqClockAt: 70_000},
	}}
	for _, c := range []struct {
		name    string
		present uint64
		cpu     uint32
		since   Since
		arrival uint64
		queued  uint64
		exec    uint64
		stop    uint64
		want    uint64
		how     string
	}{
		{"own CPU", hasStamps, 1, SinceArrival, 900, 0, 950, 0, 4100, "at most"},
		{"queued", hasStamps, 0, SinceQueued, 100, 900, 0, 0, 100, "at most"},
		{"queued, at the stop", hasStamps, 0, SinceQueued, 100, 900, 0, 69_970, 70, "at most"},
		{"queued by the stop", hasStamps, 0, SinceQueued, 100, 900, 0, 69_500, 0, "at most"},
		{"read before the stop", hasStamps, 0, SinceQueued, 100, 900, 0, 70_005, 105, "at most"},
		{"not queued", hasStamps, 0, SinceQueued, 100, 0, 0, 0, 0, "unknown"},
		{"slept since it was accounted for", hasStamps, 0, SinceSwitch, 100, 0, 400, 0, 600, "at most"},
		{"slept, task clock behind", hasStamps, 0, SinceSwitch, 100, 0, 40, 0, 900, "at most"},
		{"slept, task clock of another CPU", hasStamps, 0, SinceSwitch, 100, 0, 4000, 0, 900, "at most"},
		{"slept, only the task clock", hasStamps, 0, SinceSwitch, 0, 0, 400, 0, 600, "at most"},
		{"later than the clock", hasStamps, 0, SinceArrival, 1001, 0, 0, 0, 0, "unknown"},
		{"clock not read", hasStamps, 2, SinceArrival, 1, 0, 0, 0, 999, "about"},
		{"clock not read, at the stop", hasStamps, 2, SinceSwitch, 100, 0, 900, 69_970, 70, "about"},
		{"clock not read, later than another's", hasStamps, 2, SinceArrival, 1001, 0, 0, 0, 0, "unknown"},
		{"half a pair", hasStamps, 3, SinceArrival, 1, 0, 0, 0, 999, "about"},
		{"the other half", hasStamps, 4, SinceArrival, 1, 0, 0, 0, 999, "about"},
		{"CPU not in the file", hasStamps, 9, SinceArrival, 1, 0, 0, 0, 999, "about"},
		{"stamp not read", 0, 0, SinceArrival, 1, 0, 0, 0, 0, "unknown"},
		{"state without an age", hasStamps, 0, SinceNever, 1, 1, 1, 0, 0, "unknown"},
	} {
		s.HasCapture, s.Capture.StopNs = c.stop != 0, c.stop
		th := &kcdata.Thread{Linux: kcdata.LinuxThread{
			Present: c.present, CPU: c.cpu, LastArrival: c.arrival, LastQueued: c.queued, ExecStart: c.exec,
		}}
		got := NewClock(s).Age(th, c.since)
		how := "unknown"
		if got.Known {
			how = map[bool]string{true: "about", false: "at most"}[got.About]
		}
		if got.Ns != c.want || how != c.how {
			t.Errorf("%s: %d, %s; want %d, %s", c.name, got.Ns, how, c.want, c.how)
		}
	}
	nobody := &kcdata.Snapshot{CPUs: []kcdata.LinuxCPU{{CPU: 0}, {CPU: 1}}}
	if got := NewClock(nobody).Age(&kcdata.Thread{Linux: kcdata.LinuxThread{Present: hasStamps, LastArrival: 1}}, SinceArrival); got.Known {
		t.Errorf("no CPU read its clock: %+v", got)
	}
}

// TestAgeIsTheTrueOne makes machines of which the truth is known: each CPU's
// runqueue clock has an offset of its own, a sleeper left its CPU at a known
// moment, and its stamps are from then or before. The age may be longer than
// the truth by what the stamps are early, and never shorter.
func TestAgeIsTheTrueOne(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		stop := 1e12 + r.Uint64N(1e12)
		at := stop + r.Uint64N(1e6)
		offset := r.Uint64N(1e11) // the runqueue clock is behind by this
		slept := stop - 1 - r.Uint64N(5e11)
		early := r.Uint64N(1e6)
		s := &kcdata.Snapshot{HasCapture: true, CPUs: []kcdata.LinuxCPU{{CPU: 3, RqClock: at - offset, RqClockAt: at}}}
		s.Capture.StopNs = stop
		th := &kcdata.Thread{Linux: kcdata.LinuxThread{
			Present: hasStamps, CPU: 3, ExecStart: slept - early - offset, LastArrival: slept - early - offset - r.Uint64N(1e9),
		}}
		got := NewClock(s).Age(th, SinceSwitch)
		if got != (Age{Ns: stop - slept + early, Known: true}) {
			t.Fatalf("age %+v; the truth is %d, the stamp %d early", got, stop-slept, early)
		}
		// The same thread on a CPU that was not stopped, whose clock is off by a tick at most.
		th.Linux.CPU, th.Linux.LastArrival = 4, 0
		off := r.Uint64N(4e6)
		th.Linux.ExecStart -= off
		if got := NewClock(s).Age(th, SinceSwitch); got != (Age{Ns: stop - slept + early + off, Known: true, About: true}) {
			t.Fatalf("age %+v; the truth is %d, the stamp %d early, the clock off by %d", got, stop-slept, early, off)
		}
	}
}
