package model

import "stackshot/kcdata"

// OfTask is a thread with its task.
type OfTask struct {
	*kcdata.Thread
	Task *kcdata.Task
}

// MissedCPU is what the file has on a CPU that did not stop in time. A thread is nil if it is not
// in the file.
type MissedCPU struct {
	Ran OfTask // what a sample found there after the release; nil too if that is the idle thread

	// Who is to run there before Ran, and was runnable all the same: the real-time threads of the
	// highest priority. Either the kernel holds them back for a moment, for they take all of the
	// CPU (throttling, the fair server), or it did not let go of Ran. Threads of the kernel that
	// hardly run are none of these: a watchdog wakes the stopper (migration/N), and interrupts wake
	// theirs, behind whatever keeps the CPU.
	Above []OfTask

	Suspect *kcdata.Thread // Ran, or the one of Above; nil: nobody is sure
}

// Missed looks for the thread that kept a CPU from the stop.
func Missed(s *kcdata.Snapshot, c *kcdata.LinuxCPU) (m MissedCPU) {
	isIdle := c.Flags&kcdata.CPUIdle != 0 && c.RanTid == 0
	var most int
	for _, t := range s.Tasks {
		for _, th := range t.Threads {
			if c.Flags&kcdata.CPURanKnown != 0 && !isIdle && th.ID == uint64(c.RanTid) && t.ID == uint64(c.RanTgid) {
				m.Ran = OfTask{th, t}
				continue
			}
			r := rank(th)
			if r == 0 || r < most || th.Linux.CPU != c.CPU || th.IsSelf() || t.IsSelf() {
				continue
			}
			if class := StateOf(th).Class; class != Runnable && class != Running || isKernel(t, th) && !MostlyRuns(s, th) {
				continue
			}
			if r > most {
				most, m.Above = r, nil
			}
			m.Above = append(m.Above, OfTask{th, t})
		}
	}
	if m.Ran.Thread != nil && rank(m.Ran.Thread) >= most {
		m.Above = nil
	}
	switch {
	case len(m.Above) == 0:
		m.Suspect = m.Ran.Thread
	case len(m.Above) > 1:
	case isIdle || m.Ran.Thread != nil && m.Ran.Sample != nil && m.Ran.Sample.User != 0 || MostlyRuns(s, m.Above[0].Thread):
		m.Suspect = m.Above[0].Thread // nothing but the scheduler keeps it from the idle thread, and from user mode
	}
	return m
}

func isKernel(t *kcdata.Task, th *kcdata.Thread) bool {
	return t.IsKernel() || th.Linux.Flags&kcdata.PFKthread != 0
}

func rank(t *kcdata.Thread) int {
	if !t.HasLinux {
		return 0
	}
	return Rank(t.Linux.Policy, t.Linux.RtPriority)
}

// MostlyRuns reports whether t has been on a CPU for half of its life at least, if it has lived
// for longer than a moment.
func MostlyRuns(s *kcdata.Snapshot, t *kcdata.Thread) bool {
	const (
		both   = kcdata.ThreadHasRuntime | kcdata.ThreadHasStart
		moment = 200e6 // ns
	)
	now := s.Machine.BoottimeNs
	lived := now - min(t.Linux.StartBoottime, now)
	return t.Linux.Present&both == both && lived >= moment && t.Linux.SumExecRuntime >= lived/2
}
