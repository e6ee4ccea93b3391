package snapshot

import (
	"fmt"
	"time"

	"stackshot/kcdata"
)

// describe adds to a capture what does not depend on who recorded: times, CPUs,
// phases, traces, memory. An error of kind errNotStopped: there was no stop.
func (m *team) describe(c *captured, t *try, mem *memory, missing []*worker) error {
	mem.notRecorded(c)
	t.times(c)
	t.latencies(c, mem)
	t.traces(c)
	m.describeCPUs(c, t, mem, missing)
	hotplug(c, m.plan, cpusOnline())
	mem.use(c)
	if c.censusErr != 0 {
		c.warn("census_failed", "the census broke off: "+c.censusErr.Error())
	}
	moved(c, missing)
	if anyAway(t.here) {
		c.warn("worker_away", "a thread of ours is still starved by a real-time task")
	}
	if ph := t.state.phase(); ph == phaseAborted || ph == phaseArriving {
		return &notStopped{t.whyAborted(), t.heldInVain()}
	}
	return nil
}

// whyAborted tells who kept a stop from being made.
func (t *try) whyAborted() string {
	if why := t.here[0].whyElsewhere(); why != "" {
		return fmt.Sprintf("CPU %d, which leads: %s", t.here[0].cpu, why)
	}
	if why := t.recorder.unheld(); why != "" {
		return why
	}
	return fmt.Sprintf("CPU %d, which leads, did not arrive within %v", t.here[0].cpu, time.Duration(t.arrivalBudget))
}

// describeCPUs fills one record per online CPU.
func (m *team) describeCPUs(c *captured, t *try, mem *memory, missing []*worker) {
	for _, cpu := range m.plan.Topology.CPUs {
		if !cpu.Online {
			continue
		}
		r := kcdata.LinuxCPU{CPU: uint32(cpu.ID), Kind: uint32(cpu.Kind), Cluster: uint32(cpu.Cluster)}
		if w := workerOf(t.here, cpu.ID); w != nil && !w.away && w.stamp.in {
			w.describe(&r, mem)
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

func (w *worker) describe(r *kcdata.LinuxCPU, mem *memory) {
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
	w.did.into(r)
	r.QueueNs = mem.queue.Waited(w.slot)
}

// moved names the CPUs that were missed for such a reason.
func moved(c *captured, missing []*worker) {
	for _, w := range missing {
		if why := w.whyElsewhere(); why != "" && c.missedCPU(w.cpu) {
			c.elsewhere = append(c.elsewhere, w.cpu)
			c.warn("worker_moved", fmt.Sprintf("CPU %d was left running: %s", w.cpu, why))
		}
	}
}
