package model

import (
	"cmp"
	"math"

	"stackshot/kcdata"
)

// Since is the stamp of the scheduler from which an age counts.
type Since int

const (
	SinceNever   Since = iota // the state has no age
	SinceArrival              // it last came onto a CPU: last_arrival
	SinceQueued               // it was last put on a runqueue: last_queued
	SinceSwitch               // it last left its CPU: the later of last_arrival and exec_start
)

// Clock maps stamps of the scheduler to ages at the stop. Nothing changes it after
// NewClock.
type Clock struct {
	cpus map[uint32]*kcdata.LinuxCPU // those with a pair of readings, by number
	any  *kcdata.LinuxCPU            // the first CPU with a pair; nil: none has one
	stop uint64                      // CLOCK_MONOTONIC; 0: the machine was not stopped
}

// NewClock takes from s each CPU's pair of readings (rq_clock, rq_clock_at).
func NewClock(s *kcdata.Snapshot) *Clock {
	c := &Clock{cpus: make(map[uint32]*kcdata.LinuxCPU, len(s.CPUs))}
	for i := range s.CPUs {
		cpu := &s.CPUs[i]
		if cpu.RqClock == 0 || cpu.RqClockAt == 0 {
			continue
		}
		c.cpus[cpu.CPU] = cpu
		if c.any == nil {
			c.any = cpu
		}
	}
	if s.HasCapture {
		c.stop = s.Capture.StopNs
	}
	return c
}

// Age is how long a thread had been in its state when the machine stopped. The zero Age
// means not known, which is not the same as 0 ns.
type Age struct {
	Ns    uint64
	Known bool
	// About: the file has no pair of readings for the thread's CPU (it was not
	// stopped, for example), so the age comes from another CPU's pair. All runqueue
	// clocks are sched_clock, and the kernel keeps those of the CPUs within about a
	// tick of each other, mostly closer. Without About, Ns is an upper bound, because
	// every stamp is from before the state began.
	About bool
}

// Age returns how long t had been in its state when the machine stopped. The scheduler
// stamps in the runqueue clock of the thread's CPU, which is not CLOCK_MONOTONIC. So a stamp
// needs a pair of readings of both clocks: that of its own CPU or, approximately, that of
// another one. The age is not known (and not zero) if no CPU has a pair (nothing was
// stopped), if the stamp is missing, or if the stamp is later than the reading. In the last
// case the two do not belong together: the thread has moved, or its CPU was not stopped and
// it ran on there.
func (c *Clock) Age(t *kcdata.Thread, since Since) Age {
	cpu := c.cpus[t.Linux.CPU]
	about := cpu == nil
	if about {
		cpu = c.any
	}
	if cpu == nil || t.Linux.Present&kcdata.ThreadHasSchedInfo == 0 {
		return Age{}
	}
	from := stamp(&t.Linux, since, cpu.RqClock)
	if from == 0 || from > cpu.RqClock {
		return Age{}
	}
	return Age{Ns: c.atStop(cpu.RqClock-from, cpu.RqClockAt), Known: true, About: about}
}

// Bounds gives the age in the form of the JSON output, in ns: one of the two is set; neither
// is set if the age is not known.
func (a Age) Bounds() (atMost, about *uint64) {
	switch {
	case !a.Known:
		return nil, nil
	case a.About:
		return nil, &a.Ns
	}
	return &a.Ns, nil
}

// LongestFirst compares ages for sorting. An unknown age comes last.
func LongestFirst(a, b Age) int {
	switch {
	case a.Known != b.Known && a.Known:
		return -1
	case a.Known != b.Known:
		return 1
	}
	return cmp.Compare(b.Ns, a.Ns)
}

// stamp is the latest stamp from before the state began.
//
// exec_start is a reading of the runqueue's task clock. That clock leaves out interrupts and
// stolen time, so it is never ahead of the runqueue clock, and the age can only come out
// longer. The scheduler reads it when it accounts for the thread for the last time before
// the thread leaves its CPU, so it is mostly the better of the two stamps.
func stamp(l *kcdata.LinuxThread, since Since, now uint64) uint64 {
	switch since {
	case SinceArrival:
		return l.LastArrival
	case SinceQueued:
		return l.LastQueued
	case SinceSwitch:
		if l.ExecStart <= now {
			return max(l.LastArrival, l.ExecStart)
		}
		return l.LastArrival
	}
	return 0
}

// atStop turns an age at the reading of the clock into the age at the stop. A state that
// began after the stop was caused by it: such a thread had waited 0 ns.
func (c *Clock) atStop(age, at uint64) uint64 {
	switch {
	case c.stop == 0:
		return age
	case at > c.stop:
		return age - min(age, at-c.stop)
	}
	return age + min(c.stop-at, math.MaxUint64-age)
}
