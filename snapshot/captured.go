package snapshot

import (
	"slices"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
	"stackshot/workqueue"
)

// captured is what one try brought. Streams refer to the engine's memory.
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
	samples   []sampled                // of CPUs that were not stopped, taken after the release
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
