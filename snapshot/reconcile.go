package snapshot

import (
	"fmt"
	"slices"

	"stackshot/kcdata"
	"stackshot/workqueue"
)

// reconcile compares the census with the list of /proc after the release.
// Whoever was there before the stop and is not in the file is named: cut off
// when the pause was spent, or hidden by this kernel from BPF iterators. A
// hidden task is then recorded from /proc, unstopped.
func (s *Session) reconcile(c *captured) {
	if c.engine == EngineProcfs {
		return
	}
	have := c.recordedTasks()
	for _, f := range c.failed {
		have[int(f.item.Tgid)] = true
	}
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
	if !c.wholeCensus {
		s.leaveOut(c, missing)
		return
	}
	s.recordHidden(c, missing)
}

// reconcileAsked is reconcile for tasks asked for by number: one of which the
// engine found nothing, and which is still there, is not gone but hidden.
func (s *Session) reconcileAsked(c *captured) {
	if c.engine == EngineProcfs {
		return
	}
	have := c.recordedTasks()
	var hidden []int
	c.failed = slices.DeleteFunc(c.failed, func(f failure) bool {
		tgid := int(f.item.Tgid)
		if f.reason != kcdata.LeftOutVanished || have[tgid] || !s.startedBefore(c, tgid) {
			return false
		}
		hidden = append(hidden, tgid)
		return true
	})
	slices.Sort(hidden)
	s.recordHidden(c, slices.Compact(hidden))
}

// startedBefore tells whether a task of now was there before the stop. /proc has
// start times in ticks since boot.
func (s *Session) startedBefore(c *captured, tgid int) bool {
	st, err := s.proc.Stat(tgid)
	return err == nil && st.StartBoottime()/tickNs < c.at.boottime/tickNs
}

func (s *Session) leaveOut(c *captured, tgids []int) {
	reason := uint32(kcdata.LeftOutMaxPause)
	switch {
	case c.ranShort:
		reason = kcdata.LeftOutNoSpace
	case c.censusErr != 0:
		reason = kcdata.LeftOutError
	}
	for _, tgid := range tgids {
		threads := 0
		if st, err := s.proc.Stat(tgid); err == nil {
			threads = int(st.NumThreads)
		}
		c.failed = append(c.failed, failure{item: itemOf(tgid, threads), reason: reason, errno: c.censusErr})
	}
}

// recordHidden appends the tasks after the census, in ascending order.
func (s *Session) recordHidden(c *captured, tgids []int) {
	s.openProcfs().record(c, tgids)
	for _, p := range c.recorded {
		if p.hidden {
			c.warn("hidden_task", fmt.Sprintf(
				"task %d is hidden from BPF iterators by this kernel: read from /proc after the machine ran on", p.item.Tgid))
		}
	}
}

func itemOf(tgid, threads int) workqueue.Item {
	return workqueue.Item{Tgid: int32(tgid), Count: uint32(threads)}
}
