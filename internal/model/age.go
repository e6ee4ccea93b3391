package model

import (
	"cmp"
	"math"

	"stackshot/kcdata"
)

// Since says which stamp of the scheduler an age counts from.
type Since int

const (
	SinceNever   Since = iota // the state has no age
	SinceArrival              // it last came onto a CPU: last_arrival
	SinceQueued               // it was last put on a runqueue: last_queued
	SinceSwitch               // it last left its CPU: not before last_arrival, nor before exec_start
)

// Clock maps stamps of the scheduler to ages at the stop. Constant after
// NewClock.
type Clock struct {
	cpus map[uint32]*kcdata.LinuxCPU // that left a pair
	any  *kcdata.LinuxCPU            // the first of them; nil: there is none
	stop uint64                      // CLOCK_MONOTONIC; 0: the machine was not stopped
}

// NewClock takes each CPU's pair of readings from the file.
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
// is not known, which is something else than 0 ns.
type Age struct {
	Ns    uint64
	Known bool
	// About: its CPU left no pair of readings, as one that was not stopped; the
	// age is by another's. All runqueue clocks are sched_clock, of which the kernel
	// keeps what CPUs see within a tick or so of each other, and mostly the same.
	// Else it had been so for Ns at most, because each stamp is from before the
	// state began.
	About bool
}

// Age returns how long t had been in its state when the machine stopped. The
// scheduler stamps in the runqueue clock of the thread's CPU, which is not
// CLOCK_MONOTONIC, so a stamp counts only through the pair of readings that a CPU
// left: its own or, about, another's. Not known (never zero) where no CPU left a
// pair (nothing was stopped), where the stamp is missing, and where it is later
// than the reading: then the two do not belong together (the thread has moved, or
// its CPU was not stopped and it ran on there).
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

// Bounds are the age as JSON has it: in the one or the other, in neither where it is not
// known.
func (a Age) Bounds() (atMost, about *uint64) {
	switch {
	case !a.Known:
		return nil, nil
	case a.About:
		return nil, &a.Ns
	}
	return &a.Ns, nil
}

// LongestFirst compares ages for sorting. What is not known comes last.
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
// exec_start is in the runqueue's task clock, which leaves interrupts and
// stolen time out and therefore never reads more than the runqueue clock: the
// age only comes out longer. It is taken when the thread is accounted for the
// last time before it leaves its CPU, so it is mostly the better of the two.
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

// atStop turns an age at the reading of the clock into one at the stop. What
// began after the stop began by it: such a thread had waited 0 ns.
func (c *Clock) atStop(age, at uint64) uint64 {
	switch {
	case c.stop == 0:
		return age
	case at > c.stop:
		return age - min(age, at-c.stop)
	}
	return age + min(c.stop-at, math.MaxUint64-age)
}
