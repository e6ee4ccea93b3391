package snapshot

import (
	"fmt"
	"slices"

	"stackshot/internal/capture"
	"stackshot/internal/engine/proc"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// reconcile compares the census with the tasks in /proc after the release. It finds tasks
// that were there before the stop and that the census lacks. If the census did not reach
// its end, they are listed as left out. Else this kernel hides them from BPF iterators,
// and they are recorded from /proc while the machine runs.
func (s *Session) reconcile(c *capture.Raw) {
	if c.Engine == EngineProcfs {
		return
	}
	have := c.KnownTasks()
	tgids, err := s.machine.Tasks()
	if err != nil {
		return
	}
	var missing []int
	for _, tgid := range tgids {
		if !have[tgid] && s.startedBefore(c, tgid) {
			missing = append(missing, tgid)
		}
	}
	if len(missing) == 0 {
		return
	}
	if !c.WholeCensus {
		s.leaveOut(c, missing)
		return
	}
	s.recordHidden(c, missing)
}

// reconcileAsked is reconcile for tasks asked for by number. If the engine found
// nothing of a task, and it is still there, it is hidden.
func (s *Session) reconcileAsked(c *capture.Raw) {
	if c.Engine == EngineProcfs {
		return
	}
	have := c.RecordedTasks()
	var hidden []int
	c.Failed = slices.DeleteFunc(c.Failed, func(f capture.Failure) bool {
		tgid := int(f.Item.Tgid)
		if f.Reason != kcdata.LeftOutVanished || have[tgid] || !s.startedBefore(c, tgid) {
			return false
		}
		hidden = append(hidden, tgid)
		return true
	})
	slices.Sort(hidden)
	s.recordHidden(c, slices.Compact(hidden))
}

// startedBefore reports whether a task that is there now was there before the stop. /proc has
// start times in ticks since boot.
func (s *Session) startedBefore(c *capture.Raw, tgid int) bool {
	st, err := s.proc.Stat(tgid)
	return err == nil && st.StartBoottime()/proc.TickNs < c.At.Boottime/proc.TickNs
}

func (s *Session) leaveOut(c *capture.Raw, tgids []int) {
	reason := uint32(kcdata.LeftOutMaxPause)
	switch {
	case c.RanShort:
		reason = kcdata.LeftOutNoSpace
	case c.CensusErr != 0:
		reason = kcdata.LeftOutError
	}
	for _, tgid := range tgids {
		threads := 0
		if st, err := s.proc.Stat(tgid); err == nil {
			threads = int(st.NumThreads)
		}
		c.Failed = append(c.Failed, capture.Failure{Item: workqueue.Item{Tgid: int32(tgid), Count: uint32(threads)}, Reason: reason, Errno: c.CensusErr})
	}
}

// recordHidden appends the tasks after the census, in ascending order.
func (s *Session) recordHidden(c *capture.Raw, tgids []int) {
	s.openProcfs().Record(c, tgids)
	for _, p := range c.Recorded {
		if p.Hidden {
			c.Warn("hidden_task", fmt.Sprintf(
				"task %d is hidden from BPF iterators by this kernel: read from /proc after the machine ran on", p.Item.Tgid))
		}
	}
}
