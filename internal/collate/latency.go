package collate

import (
	"stackshot/internal/capture"
	"stackshot/kcdata"
)

// latencyTask is XNU's record of one task. setup is the time to find the task, cur_tsnap
// that for its head, the data loop that for its threads, and end that to close it.
func latencyTask(tgid uint32, spent capture.Cost) *kcdata.LatencyTask {
	return &kcdata.LatencyTask{
		TaskUniqueID: uint64(tgid), Setup: uint64(spent.Setup), CurTsnap: uint64(spent.Head),
		ThreadDataLoop: uint64(spent.Threads), End: uint64(spent.End),
	}
}

// collectionOf is XNU's record of the whole, version 2.
func collectionOf(c *capture.Raw) *kcdata.LatencyCollection {
	k, l := &c.Capture, c.Latency
	l.Version = 2
	l.TaskQueueBuildingMt, l.CPUWaitMt = k.CensusNs, k.ArrivalNs
	l.MainCPU = -1
	for _, cpu := range c.CPUs {
		if cpu.Flags&kcdata.CPUMain != 0 {
			l.MainCPU = int32(cpu.CPU)
		}
	}
	l.BufferSize, l.BufferUsed, l.BufferOverhead = k.BufferSize, k.BufferUsed, k.Overhead
	l.BufferCount = uint64(len(c.Arenas))
	return &l
}

// latencyCPUs are XNU's per-CPU records, for CPUs that recorded. init is the time from the
// moment the CPU was taken until recording began.
func latencyCPUs(c *capture.Raw) []kcdata.LatencyCPU {
	out := []kcdata.LatencyCPU{}
	for _, cpu := range c.CPUs {
		if cpu.Flags&kcdata.CPUWorked == 0 {
			continue
		}
		r := kcdata.LatencyCPU{
			CPU: int32(cpu.CPU), ClusterType: int32(cpu.Kind), WorkqueueMt: cpu.QueueNs,
			TotalMt: cpu.ReleaseNs - cpu.ArriveNs, TasksProcessed: uint64(cpu.Tasks),
			ThreadsProcessed: uint64(cpu.Threads), TotalBuf: cpu.Bytes, InterclusterBufUsed: cpu.SpillBytes,
		}
		for _, p := range c.Phases {
			if p.CPU == cpu.CPU {
				r.InitMt = p.EnterNs + p.ArrivalNs + p.HoldNs
				r.TotalMt, r.TotalCycles, r.TotalInstrs = p.TotalNs, p.Cycles, p.Instrs
			}
		}
		out = append(out, r)
	}
	return out
}
