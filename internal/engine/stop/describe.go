package stop

import (
	"fmt"
	"time"

	"stackshot/internal/capture"
	"stackshot/internal/engine"
	"stackshot/kcdata"
)

// Describe adds to a capture what does not depend on who recorded: times, CPUs,
// phases, traces, memory. Errors: of kind engine.ErrNotStopped, there was no stop;
// engine.ErrPanics.
func (m *Team) Describe(c *capture.Raw, t *Try, mem *engine.Memory, missing []*Worker) error {
	mem.NotRecorded(c)
	t.times(c)
	t.recorded(c, mem)
	m.describeCPUs(c, t, mem, missing)
	hotplug(c, m.Plan, CpusOnline())
	mem.Use(c)
	if c.CensusErr != 0 {
		c.Warn("census_failed", "the census broke off: "+c.CensusErr.Error())
	}
	moved(c, missing)
	if anyAway(t.Here) {
		c.Warn("worker_away", "a thread of ours is still starved by a real-time task")
	}
	switch t.State.Phase() {
	case PhaseAborted, PhaseArriving:
		return &engine.NotStopped{Why: t.whyAborted(), Held: t.heldInVain()}
	case PhasePanicked:
		return engine.ErrPanics
	}
	return nil
}

// whyAborted says which CPU kept the stop from taking place.
func (t *Try) whyAborted() string {
	if why := t.Here[0].whyElsewhere(); why != "" {
		return fmt.Sprintf("CPU %d, which leads: %s", t.Here[0].CPU, why)
	}
	if why := t.recorder.Unheld(); why != "" {
		return why
	}
	return fmt.Sprintf("CPU %d, which leads, did not arrive within %v", t.Here[0].CPU, time.Duration(t.arrivalBudget))
}

// describeCPUs fills one record per online CPU.
func (m *Team) describeCPUs(c *capture.Raw, t *Try, mem *engine.Memory, missing []*Worker) {
	for _, cpu := range m.Plan.Topology.CPUs {
		if !cpu.Online {
			continue
		}
		r := kcdata.LinuxCPU{CPU: uint32(cpu.ID), Kind: uint32(cpu.Kind), Cluster: uint32(cpu.Cluster)}
		if w := WorkerOf(t.Here, cpu.ID); w != nil && !w.Away && w.Stamp.In {
			w.describe(&r, mem)
		} else if WorkerOf(missing, cpu.ID) != nil {
			r.Flags |= kcdata.CPUMissed
		} else {
			r.Flags |= kcdata.CPULeft
		}
		c.CPUs = append(c.CPUs, r)
	}
}

func WorkerOf(list []*Worker, cpu int) *Worker {
	for _, w := range list {
		if w.CPU == cpu {
			return w
		}
	}
	return nil
}

func (w *Worker) describe(r *kcdata.LinuxCPU, mem *engine.Memory) {
	r.Flags |= kcdata.CPUStopped
	if w.Works {
		r.Flags |= kcdata.CPUWorked
	}
	if w.Stamp.Main {
		r.Flags |= kcdata.CPUMain
	}
	slot := w.SlotMem()
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
	r.ArriveNs, r.ReleaseNs = uint64(w.Stamp.Arrived), uint64(w.Stamp.Released)
	r.Switches = w.Stamp.Switches
	w.Did.Into(r)
	r.QueueNs = mem.Queue.Waited(w.Slot)
}

// moved adds a warning for each CPU that was missed because its worker was on another
// CPU, or may not run on its own.
func moved(c *capture.Raw, missing []*Worker) {
	for _, w := range missing {
		if why := w.whyElsewhere(); why != "" && c.MissedCPU(w.CPU) {
			c.Moved = append(c.Moved, w.CPU)
			c.Warn("worker_moved", fmt.Sprintf("CPU %d was left running: %s", w.CPU, why))
		}
	}
}
