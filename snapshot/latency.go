package snapshot

import "stackshot/kcdata"

// cost is where the time for one item went, ns; all 0 with LatencyOff. Under
// pull the threads include the task's head.
type cost struct{ setup, head, threads, end int64 }

func (a cost) plus(b cost) cost {
	return cost{a.setup + b.setup, a.head + b.head, a.threads + b.threads, a.end + b.end}
}

// clock starts the timing of an item; 0 where nothing is timed.
func (t *try) clock() int64 {
	if t.latency == 0 {
		return 0
	}
	return nanotime()
}

// since gives the time since the clock was last read, and reads it.
func (t *try) since(clock *int64) int64 {
	was := *clock
	*clock = t.clock()
	return *clock - was
}

// latencyTask is XNU's record of one task: setup finds it, cur_tsnap is its
// head, the data loop its threads, end closes it.
func latencyTask(tgid uint32, spent cost) *kcdata.LatencyTask {
	return &kcdata.LatencyTask{
		TaskUniqueID: uint64(tgid), Setup: uint64(spent.setup), CurTsnap: uint64(spent.head),
		ThreadDataLoop: uint64(spent.threads), End: uint64(spent.end),
	}
}

// phases is where a CPU's time went: each field is the distance of two stamps
// that follow each other.
func (w *worker) phases(queue uint64) kcdata.LinuxPhases {
	s := &w.stamp
	from, to := w.heldCPU()
	span := func(from, to int64) uint64 { return uint64(max(to-from, 0)) }
	p := kcdata.LinuxPhases{
		CPU: uint32(w.cpu), TotalNs: span(from, to), EnterNs: span(from, s.arrived),
		ArrivalNs: span(s.arrived, s.decided), HoldNs: span(s.decided, s.window), CensusNs: uint64(s.census),
		QueueNs: queue, DrainNs: span(s.drained, s.checked), VerifyNs: span(s.checked, s.verified),
		ReleaseNs: span(s.verified, s.released), ExitNs: span(s.released, to),
	}
	p.RecordNs = span(s.window, s.drained) - min(span(s.window, s.drained), p.CensusNs+p.QueueNs)
	return p
}

// latencies derives the records that need the workers' stamps.
func (c *captured) latencies(t *try, team []*worker) {
	for _, w := range team {
		if !w.away && w.stamp.in {
			p := w.phases(t.mem.queue.Waited(w.slot))
			if w.cost.has {
				p.Cycles, p.Instrs = w.cost.cycles, w.cost.instrs
				p.Present |= kcdata.PhasesHaveCycles
			}
			c.phases = append(c.phases, p)
		}
		c.latency.TaskIterationMt = max(c.latency.TaskIterationMt, uint64(max(w.stamp.drained-w.stamp.window, 0)))
	}
}

// arenasOf describes the memory of each cluster.
func arenasOf(m *memory) []kcdata.LinuxArena {
	var out []kcdata.LinuxArena
	for i := range m.alloc.Clusters() {
		s := m.alloc.Stats(i)
		out = append(out, kcdata.LinuxArena{
			Cluster: uint32(i), Entries: uint32(s.Entries), Size: s.Size, Used: s.Used, SpillOut: m.alloc.SpillBy(i),
			SpillIn: s.Spill, FreedSize: s.Overhead + s.Reused, Reused: s.Reused, Overhead: s.Overhead,
			Allocs: s.Allocs, Refused: s.Refused,
		})
	}
	return out
}

// collection is XNU's record of the whole, version 2.
func (c *captured) collection() *kcdata.LatencyCollection {
	k, l := &c.capture, c.latency
	l.Version = 2
	l.TaskQueueBuildingMt, l.CPUWaitMt = k.CensusNs, k.ArrivalNs
	l.MainCPU = -1
	for _, cpu := range c.cpus {
		if cpu.Flags&kcdata.CPUMain != 0 {
			l.MainCPU = int32(cpu.CPU)
		}
	}
	l.BufferSize, l.BufferUsed, l.BufferOverhead = k.BufferSize, k.BufferUsed, k.Overhead
	l.BufferCount = uint64(len(c.arenas))
	return &l
}

// latencyCPUs is XNU's per-CPU record, for CPUs that worked. init is what passed
// from taken until recording began.
func (c *captured) latencyCPUs() []kcdata.LatencyCPU {
	out := []kcdata.LatencyCPU{}
	for _, cpu := range c.cpus {
		if cpu.Flags&kcdata.CPUWorked == 0 {
			continue
		}
		r := kcdata.LatencyCPU{
			CPU: int32(cpu.CPU), ClusterType: int32(cpu.Kind), WorkqueueMt: cpu.QueueNs,
			TotalMt: cpu.ReleaseNs - cpu.ArriveNs, TasksProcessed: uint64(cpu.Tasks),
			ThreadsProcessed: uint64(cpu.Threads), TotalBuf: cpu.Bytes, InterclusterBufUsed: cpu.SpillBytes,
		}
		for _, p := range c.phases {
			if p.CPU == cpu.CPU {
				r.InitMt = p.EnterNs + p.ArrivalNs + p.HoldNs
				r.TotalMt, r.TotalCycles, r.TotalInstrs = p.TotalNs, p.Cycles, p.Instrs
			}
		}
		out = append(out, r)
	}
	return out
}
