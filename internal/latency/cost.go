package latency

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Costs says what tasks cost (--latency task, thread), or threads (--latency thread).
type Costs[C any] struct {
	Measured int    `json:"measured"`      // 0: not measured
	Slowest  []C    `json:"slowest"`       // greatest total first
	Dists    []Dist `json:"distributions"` // none if nothing was measured
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

// costsOf returns no costs if the file does not say how long its ticks are.
func costsOf(s *kcdata.Snapshot, top int, asked func(*kcdata.Thread) bool) (tasks Costs[TaskCost], threads Costs[ThreadCost]) {
	var ofTasks []TaskCost
	var ofThreads []ThreadCost
	t, ok := ticksOf(s)
	for _, task := range s.Tasks {
		if task.Latency != nil && ok && (slices.ContainsFunc(task.Threads, asked) || len(task.Threads) == 0 && asked(nil)) { // nil: all are asked for
			ofTasks = append(ofTasks, taskCost(t, task))
		}
		for _, th := range task.Threads {
			if th.Latency != nil && ok && asked(th) {
				ofThreads = append(ofThreads, threadCost(t, task, th))
			}
		}
	}
	tasks.Measured, threads.Measured = len(ofTasks), len(ofThreads)
	tasks.Slowest, tasks.Dists = greatest(ofTasks, top,
		measured[TaskCost]{"task_ns", func(c *TaskCost) *uint64 { return &c.TotalNs }},
		measured[TaskCost]{"task_per_thread_ns", func(c *TaskCost) *uint64 { return c.PerThreadNs }})
	threads.Slowest, threads.Dists = greatest(ofThreads, top,
		measured[ThreadCost]{"thread_ns", func(c *ThreadCost) *uint64 { return &c.TotalNs }},
		measured[ThreadCost]{"thread_stack_ns", func(c *ThreadCost) *uint64 { return &c.StackNs }})
	return tasks, threads
}

// measured is a figure, in ns, of records of type C; nil: the record does not have it.
type measured[C any] struct {
	name string
	ns   func(*C) *uint64
}

// greatest sorts all records by the first figure, which each must have, in place. It returns
// the first top records and the distribution of each figure; no distribution without records.
func greatest[C any](all []C, top int, figures ...measured[C]) ([]C, []Dist) {
	slices.SortStableFunc(all, func(a, b C) int { return cmp.Compare(*figures[0].ns(&b), *figures[0].ns(&a)) })
	dists := []Dist{}
	for _, f := range figures {
		if len(all) > 0 {
			dists = append(dists, distOf(f.name, UnitNs, all, f.ns))
		}
	}
	return first(all, top), dists
}

func taskCost(t ticks, task *kcdata.Task) TaskCost {
	l := task.Latency
	c := TaskCost{
		Who: account.WhoTask(task), Threads: len(task.Threads),
		FindNs: t.ns(l.Setup), HeadNs: t.ns(l.CurTsnap), ThreadsNs: t.ns(l.ThreadDataLoop), EndNs: t.ns(l.End),
		OtherNs: t.ns(l.ThreadCountLoop, l.Pmap, l.BSDProcIDs, l.Misc, l.Misc2),
	}
	c.TotalNs = sum(c.FindNs, c.HeadNs, c.ThreadsNs, c.EndNs, c.OtherNs)
	if c.Threads > 0 {
		c.PerThreadNs = new(c.TotalNs / uint64(c.Threads))
	}
	return c
}

func threadCost(t ticks, task *kcdata.Task, th *kcdata.Thread) ThreadCost {
	l := th.Latency
	c := ThreadCost{
		Who: account.WhoThread(task, th), Frames: len(th.Kernel),
		HeadNs: t.ns(l.CurThsnap1), StackNs: t.ns(l.KernelStack), RestNs: t.ns(l.CurThsnap2), ItemsNs: t.ns(l.Misc),
		OtherNs: t.ns(l.DispatchSerial, l.DispatchLabel, l.ThreadName, l.SurTimes, l.UserStack),
	}
	c.TotalNs = sum(c.HeadNs, c.StackNs, c.RestNs, c.ItemsNs, c.OtherNs)
	return c
}

func (p *page) taskCosts(c *Costs[TaskCost]) {
	head := []string{"total", "find", "head", "threads", "end", "other", "count", "per thread", "task"}
	costTable(p, "task", c, head, func(r *TaskCost) []string {
		return append(micros(r.TotalNs, r.FindNs, r.HeadNs, r.ThreadsNs, r.EndNs, r.OtherNs), fmt.Sprint(r.Threads), cell(r.PerThreadNs, show.Micros), r.Who.String())
	})
}

func (p *page) threadCosts(c *Costs[ThreadCost]) {
	head := []string{"total", "head", "stack", "rest", "items", "other", "frames", "thread"}
	costTable(p, "thread", c, head, func(r *ThreadCost) []string {
		return append(micros(r.TotalNs, r.HeadNs, r.StackNs, r.RestNs, r.ItemsNs, r.OtherNs), fmt.Sprint(r.Frames), r.Who.String())
	})
}

// costTable lists the slowest, with their parts in us.
func costTable[C any](p *page, noun string, c *Costs[C], head []string, row func(*C) []string) {
	p.heading("SLOWEST %sS, us", strings.ToUpper(noun))
	if c.Measured == 0 {
		p.Line("not measured (--latency %s)", noun)
		return
	}
	p.table(true, rowsOf(head, c.Slowest, row))
	p.more(c.Measured-len(c.Slowest), noun)
}

// micros writes one cell for each duration, in us.
func micros(ns ...uint64) (cells []string) {
	for _, v := range ns {
		cells = append(cells, show.Micros(v))
	}
	return cells
}

// more says that a list was cut.
func (p *page) more(n int, noun string) {
	if n > 0 {
		p.Line("and %s (--top)", show.Count(n, "more "+noun))
	}
}
