package snapshot

import (
	"fmt"
	"strings"
	"time"

	"stackshot/kcdata"
)

// result reads what the workers left behind.
func (p *pull) result(t *try, team, missing []*worker) (*captured, error) {
	c := &captured{
		engine: p.name(), isolation: p.level, seenTasks: t.seenTasks, seenThreads: t.seenThreads,
		ranShort: t.state.ranShort(), censusErr: t.censusErr, wholeCensus: t.pids != nil || t.censusWhole,
	}
	p.noteLate(t, team)
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
func (p *pull) noteLate(t *try, team []*worker) {
	open, _ := p.team.opened(t.number)
	for i, w := range team {
		w.late = (open || i == 0) && (w.away || w.stamp.arrived == 0)
	}
}

// moved says which of our threads were not on their CPU when their turn came: CPU
// hotplug or a cpuset had moved them. "": none.
func moved(team []*worker) string {
	var list []string
	for _, w := range team {
		if !w.away && w.stamp.on != w.cpu {
			list = append(list, fmt.Sprintf("the thread that was to stop CPU %d had been moved to CPU %d (a cpuset, or CPU hotplug)", w.cpu, w.stamp.on))
		}
	}
	return strings.Join(list, "; ")
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
	if why := moved(team); why != "" {
		c.warn("worker_moved", why)
	}
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
	if why := moved(team); why != "" {
		return why
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
