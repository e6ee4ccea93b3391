package snapshot

import (
	"slices"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
	"stackshot/workqueue"
)

// captured is one capture as it was made: plain data, from which collation makes the
// file, here or in another process. It refers to no worker and no session. The bytes
// of its parts are lent by the engine until that releases them, and collation changes
// records in them: they are good for one collation.
//
//	engine     all of the first group, and what it did in the second
//	tries      tries, trace, samples
//	session    request, at, the state of the machine, warnings
type captured struct {
	engine, isolation string
	recorded          []recorded
	failed            []failure
	cpus              []kcdata.LinuxCPU
	elsewhere         []int // CPUs that were missed because our thread was not there; said in a warning of its own
	capture           kcdata.LinuxCapture
	seenTasks         int
	seenThreads       int
	ranShort          bool // memory ran out
	queueFull         bool // of these, the queues' memory
	wholeCensus       bool
	censusErr         unix.Errno
	warnings          []kcdata.Warning

	second    *recheck // nil: nothing was read twice
	phases    []kcdata.LinuxPhases
	arenas    []kcdata.LinuxArena
	tries     []kcdata.LinuxTry
	trace     []kcdata.LinuxTrace
	keepTrace bool                     // asked for
	latency   kcdata.LatencyCollection // as far as it is known
	at        moment                   // of the stop; where nothing was stopped, when all was recorded
	request   string                   // as words; "": the whole machine
	asked     []uint32                 // thread groups that were asked for; nil: all
	state     machineState
	samples   []sampled // of CPUs that were not stopped, taken after the release
}

// recorded is one part of one task, by its place in the census.
type recorded struct {
	item    workqueue.Item
	threads uint32
	pieces  [][]byte // of its stream, in order; lent by the engine
	cost    cost
	hidden  bool // read from /proc afterwards: not part of the stop
}

// failure is an item that was taken and could not be recorded.
type failure struct {
	item   workqueue.Item
	reason uint32 // kcdata.LeftOut*
	errno  unix.Errno
}

func (c *captured) add(it workqueue.Item, threads uint32, pieces [][]byte, spent cost) {
	c.recorded = append(c.recorded, recorded{item: it, threads: threads, pieces: pieces, cost: spent})
}

// inOrder sorts by census index: order never comes from time (rule 4). Parts of
// a task are added in the order of their threads, and stay in it.
func (c *captured) inOrder() []recorded {
	slices.SortStableFunc(c.recorded, func(a, b recorded) int { return int(a.item.Index) - int(b.item.Index) })
	return c.recorded
}

func (c *captured) stoppedCPU(id int) bool { return c.flagged(id, kcdata.CPUStopped) }
func (c *captured) missedCPU(id int) bool  { return c.flagged(id, kcdata.CPUMissed) }

func (c *captured) flagged(id int, flag uint32) bool {
	return slices.ContainsFunc(c.cpus, func(r kcdata.LinuxCPU) bool { return int(r.CPU) == id && r.Flags&flag != 0 })
}

// machineState is how the machine was doing, as its own files say: texts of /proc.
type machineState struct{ loadavg, meminfo, pressure string }

// sampled is what one CPU that was not stopped ran, and where (internal/bpf.Sample).
type sampled struct {
	cpu       int
	tid, tgid uint32 // 0: idle, or a thread that our pid namespace does not show
	comm      string
	idle      bool
	user      bool   // in user mode
	at        uint64 // CLOCK_MONOTONIC, ns
	ip        uint64
	kernel    []uint64 // leaf first
	userStack []uint64
	delay     uint64 // after the window's end, ns
	ran       bool   // its CPU was not stopped: what it ran is what the sample says
}

func (c *captured) warn(code, text string) {
	c.warnings = append(c.warnings, kcdata.Warning{Code: code, Text: text})
}

// recordedTasks are the thread groups of which something is recorded.
func (c *captured) recordedTasks() map[int]bool {
	have := map[int]bool{}
	for _, r := range c.recorded {
		have[int(r.item.Tgid)] = true
	}
	return have
}

// troubled says that somebody will want to know what we did ourselves.
func (c *captured) troubled() bool {
	if c.capture.StopBroken > 0 || len(c.failed) > 0 {
		return true
	}
	return slices.ContainsFunc(c.cpus, func(r kcdata.LinuxCPU) bool { return r.Flags&kcdata.CPUMissed != 0 }) ||
		slices.ContainsFunc(c.tries, func(y kcdata.LinuxTry) bool { return y.Outcome != kcdata.TryWhole })
}

// priorNs is the stopped time of the tries before the last.
func (c *captured) priorNs() uint64 {
	last := c.capture.ArrivalNs + c.capture.WindowNs + c.capture.ReleaseNs
	if c.capture.Tries < 2 || c.capture.StoppedNs < last {
		return 0
	}
	return c.capture.StoppedNs - last
}

// cost is where the time for one item went, ns; all 0 with LatencyOff. Under
// pull the threads include the task's head.
type cost struct{ setup, head, threads, end int64 }

func (a cost) plus(b cost) cost {
	return cost{a.setup + b.setup, a.head + b.head, a.threads + b.threads, a.end + b.end}
}

// idleTask is the tgid of the kernel's idle task.
const idleTask = 0
