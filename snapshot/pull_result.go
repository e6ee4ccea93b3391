package snapshot

import (
	"fmt"
	"time"

	"stackshot/kcdata"
)

// result reads what the workers left behind.
func (p *pull) result(t *try, team, missing []*worker) (*captured, error) {
	c := &captured{
		engine: p.name(), isolation: p.level, seenTasks: t.seenTasks, seenThreads: t.seenThreads,
		ranShort: t.state.ranShort(), censusErr: t.censusErr, wholeCensus: t.pids != nil || t.censusWhole,
	}
	t.noteLate(team)
	for _, w := range team {
		if w.away { // its memory is still its own
			continue
		}
		c.failed = append(c.failed, w.failed...)
		for _, part := range w.parts {
			c.add(part.item, part.threads, w.chain.Span(part.from, part.to), part.cost)
		}
		w.chain.Close()
	}
	c.second = t.secondOf(team)
	return c, p.finishResult(c, t, team, missing)
}

// noteLate marks who was woken and did not come: it does not lead the next.
func (t *try) noteLate(team []*worker) {
	for i, w := range team {
		w.late = (!t.shut || i == 0) && (w.away || w.stamp.arrived == 0)
	}
}

// whyElsewhere says why this worker did not hold its CPU though nothing on that CPU
// kept it away; "": it did, or something did.
func (w *worker) whyElsewhere() string {
	switch {
	case w.refused != nil:
		return fmt.Sprintf("our thread may not run there (a cpuset?): %v", w.refused)
	case !w.away && !w.freed && w.stamp.on != w.cpu:
		return fmt.Sprintf("our thread for it had been moved to CPU %d (a cpuset, or CPU hotplug)", w.stamp.on)
	}
	return ""
}

// moved names the CPUs that were missed for such a reason.
func (c *captured) moved(missing []*worker) {
	for _, w := range missing {
		if why := w.whyElsewhere(); why != "" && c.missedCPU(w.cpu) {
			c.elsewhere = append(c.elsewhere, w.cpu)
			c.warn("worker_moved", fmt.Sprintf("CPU %d was left running: %s", w.cpu, why))
		}
	}
}

// finishResult adds what does not depend on who recorded.
func (p *pull) finishResult(c *captured, t *try, team, missing []*worker) error {
	c.queueFull = t.mem.queue.Refused() > 0
	c.untaken(t.mem.queue)
	c.inFlight(t.mem.queue)
	c.times(team)
	c.latencies(t, team)
	c.traces(team)
	p.describeCPUs(c, t, team, missing)
	c.hotplug(p.plan, cpusOnline())
	c.memory(t.mem)
	if t.censusErr != 0 {
		c.warn("census_failed", "the census broke off: "+t.censusErr.Error())
	}
	c.moved(missing)
	if anyAway(team) {
		c.warn("worker_away", "a thread of ours is still starved by a real-time task")
	}
	if ph := t.state.phase(); ph == phaseAborted || ph == phaseArriving {
		return &notStopped{t.whyAborted(team), heldInVain(team)}
	}
	return nil
}

// whyAborted tells who kept a stop from being made.
func (t *try) whyAborted(team []*worker) string {
	if why := team[0].whyElsewhere(); why != "" {
		return fmt.Sprintf("CPU %d, which leads: %s", team[0].cpu, why)
	}
	if why := t.lateToHold(team); why != "" {
		return why
	}
	return fmt.Sprintf("CPU %d, which leads, did not arrive within %v", team[0].cpu, time.Duration(t.arrivalBudget))
}

// describeCPUs fills one record per online CPU.
func (p *pull) describeCPUs(c *captured, t *try, team, missing []*worker) {
	for _, cpu := range p.plan.Topology.CPUs {
		if !cpu.Online {
			continue
		}
		r := kcdata.LinuxCPU{CPU: uint32(cpu.ID), Kind: uint32(cpu.Kind), Cluster: uint32(cpu.Cluster)}
		if w := workerOf(team, cpu.ID); w != nil && !w.away && w.stamp.in {
			w.describe(&r, t)
		} else if workerOf(missing, cpu.ID) != nil {
			r.Flags |= kcdata.CPUMissed
		} else {
			r.Flags |= kcdata.CPULeft
		}
		c.cpus = append(c.cpus, r)
	}
}

func workerOf(list []*worker, cpu int) *worker {
	for _, w := range list {
		if w.cpu == cpu {
			return w
		}
	}
	return nil
}

func (w *worker) describe(r *kcdata.LinuxCPU, t *try) {
	r.Flags |= kcdata.CPUStopped
	if w.works {
		r.Flags |= kcdata.CPUWorked
	}
	if w.stamp.main {
		r.Flags |= kcdata.CPUMain
	}
	slot := w.slotMem()
	r.NrRunning = slot.NrRunning
	if slot.NrRunning > 0 {
		r.NrRunning-- // our worker
	}
	if slot.RanKnown != 0 {
		r.Flags |= kcdata.CPURanKnown
		r.RanTid, r.RanTgid = slot.RanTid, slot.RanTgid
		if slot.RanTid == 0 {
			r.Flags |= kcdata.CPUIdle
		}
		r.RqClock, r.RqClockAt = slot.RqClock, slot.StopNs
	}
	r.ArriveNs, r.ReleaseNs = uint64(w.stamp.arrived), uint64(w.stamp.released)
	r.Switches = w.stamp.switches
	for _, p := range w.parts {
		r.Tasks++
		r.Threads += p.threads
	}
	r.Bytes = uint64(w.chain.Len()) + w.bytes
	r.SpillBytes = w.spill
	r.QueueNs = t.mem.queue.Waited(w.slot)
}
