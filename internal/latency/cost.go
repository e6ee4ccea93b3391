package latency

import (
	"cmp"
	"slices"

	"stackshot/internal/account"
	"stackshot/kcdata"
)

// TaskCosts is where the time of the tasks went (--latency task, thread).
type TaskCosts struct {
	Measured int        `json:"measured"` // tasks; 0: not measured
	Slowest  []TaskCost `json:"slowest"`
	Dists    []Dist     `json:"distributions"` // none where nothing was measured
}

// TaskCost is one task: kcdata.LatencyTask, in ns. The parts are what the
// snapshotter writes there; OtherNs holds Apple's remaining fields.
type TaskCost struct {
	account.Who
	Threads     int     `json:"threads"`
	TotalNs     uint64  `json:"total_ns"`
	PerThreadNs *uint64 `json:"per_thread_ns,omitempty"` // nil: no threads
	FindNs      uint64  `json:"find_ns"`                 // finding the task
	HeadNs      uint64  `json:"head_ns"`                 // its head: snapshot, memory, namespaces
	ThreadsNs   uint64  `json:"threads_ns"`              // its threads
	EndNs       uint64  `json:"end_ns"`                  // closing it
	OtherNs     uint64  `json:"other_ns"`
}

func taskCosts(s *kcdata.Snapshot, top int) TaskCosts {
	t, ok := ticksOf(s)
	var all []TaskCost
	var totals, each []uint64
	for _, task := range s.Tasks {
		if task.Latency == nil || !ok {
			continue
		}
		c := taskCost(t, task)
		all = append(all, c)
		totals = append(totals, c.TotalNs)
		if c.PerThreadNs != nil {
			each = append(each, *c.PerThreadNs)
		}
	}
	slices.SortStableFunc(all, func(a, b TaskCost) int { return cmp.Compare(b.TotalNs, a.TotalNs) })
	out := TaskCosts{Measured: len(all), Slowest: first(all, top), Dists: []Dist{}}
	if len(all) > 0 {
		out.Dists = append(out.Dists, distOf("task_ns", UnitNs, totals), distOf("task_per_thread_ns", UnitNs, each))
	}
	return out
}

func taskCost(t ticks, task *kcdata.Task) TaskCost {
	l := task.Latency
	c := TaskCost{
		Who: account.WhoTask(task), Threads: len(task.Threads),
		FindNs: t.ns(l.Setup), HeadNs: t.ns(l.CurTsnap), ThreadsNs: t.ns(l.ThreadDataLoop), EndNs: t.ns(l.End),
		OtherNs: t.total(l.ThreadCountLoop, l.Pmap, l.BSDProcIDs, l.Misc, l.Misc2),
	}
	c.TotalNs = add(add(add(c.FindNs, c.HeadNs), add(c.ThreadsNs, c.EndNs)), c.OtherNs)
	if c.Threads > 0 {
		each := c.TotalNs / uint64(c.Threads)
		c.PerThreadNs = &each
	}
	return c
}

// ThreadCosts is where the time of the threads went (--latency thread).
type ThreadCosts struct {
	Measured int          `json:"measured"` // threads; 0: not measured
	Slowest  []ThreadCost `json:"slowest"`
	Dists    []Dist       `json:"distributions"`
}

// ThreadCost is one thread: kcdata.LatencyThread, in ns.
type ThreadCost struct {
	account.Who
	TotalNs uint64 `json:"total_ns"`
	HeadNs  uint64 `json:"head_ns"`  // its head, before the stack
	StackNs uint64 `json:"stack_ns"` // the kernel's unwinder
	RestNs  uint64 `json:"rest_ns"`  // rest of the head
	ItemsNs uint64 `json:"items_ns"` // further items
	OtherNs uint64 `json:"other_ns"`
	Frames  int    `json:"frames"` // of its kernel stack
}

func threadCosts(s *kcdata.Snapshot, top int) ThreadCosts {
	t, ok := ticksOf(s)
	var all []ThreadCost
	var totals, stacks []uint64
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			if th.Latency == nil || !ok {
				continue
			}
			c := threadCost(t, task, th)
			all = append(all, c)
			totals, stacks = append(totals, c.TotalNs), append(stacks, c.StackNs)
		}
	}
	slices.SortStableFunc(all, func(a, b ThreadCost) int { return cmp.Compare(b.TotalNs, a.TotalNs) })
	out := ThreadCosts{Measured: len(all), Slowest: first(all, top), Dists: []Dist{}}
	if len(all) > 0 {
		out.Dists = append(out.Dists, distOf("thread_ns", UnitNs, totals), distOf("thread_stack_ns", UnitNs, stacks))
	}
	return out
}

func threadCost(t ticks, task *kcdata.Task, th *kcdata.Thread) ThreadCost {
	l := th.Latency
	c := ThreadCost{
		Who: account.WhoThread(task, th), Frames: len(th.Kernel),
		HeadNs: t.ns(l.CurThsnap1), StackNs: t.ns(l.KernelStack), RestNs: t.ns(l.CurThsnap2), ItemsNs: t.ns(l.Misc),
		OtherNs: t.total(l.DispatchSerial, l.DispatchLabel, l.ThreadName, l.SurTimes, l.UserStack),
	}
	c.TotalNs = add(add(add(c.HeadNs, c.StackNs), add(c.RestNs, c.ItemsNs)), c.OtherNs)
	return c
}
