package snapshot

import (
	"errors"
	"iter"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

var errNotStopped = errors.New("the machine was not stopped")

// notStopped is a try that was given up: why, and how long it kept CPUs from
// their work all the same. It is of kind errNotStopped.
type notStopped struct {
	why  string
	held time.Duration
}

var errNobodyLeft = &notStopped{why: "no worker is left: all are starved behind real-time tasks"}

func (e *notStopped) Error() string        { return errNotStopped.Error() + ": " + e.why }
func (e *notStopped) Is(target error) bool { return target == errNotStopped }

// job is what an engine is asked for in one try.
type job struct {
	pids   []bpf.CensusEntry // nil: the whole machine
	size   size
	pause  time.Duration // what is left of the pause budget
	settle time.Duration // between the two steps of the wake
	// missed is called by the coordinator with the CPUs that did not come, as
	// soon as the others run again; nil: nobody asks.
	missed func(cpus []int)
}

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
	stream  iter.Seq[[]byte]
	cost    cost
	hidden  bool // read from /proc afterwards: not part of the stop
}

func (c *captured) add(it workqueue.Item, threads uint32, stream iter.Seq[[]byte], spent cost) {
	c.recorded = append(c.recorded, recorded{item: it, threads: threads, stream: stream, cost: spent})
}

// inOrder sorts by census index: order never comes from time (rule 4). Parts of
// a task are added in the order of their threads, and stay in it.
func (c *captured) inOrder() []recorded {
	slices.SortStableFunc(c.recorded, func(a, b recorded) int { return int(a.item.Index) - int(b.item.Index) })
	return c.recorded
}

// untaken lists what the workers left in the queues.
func (c *captured) untaken(q *workqueue.Queues) {
	reason := uint32(kcdata.LeftOutMaxPause)
	if c.ranShort {
		reason = kcdata.LeftOutNoSpace
	}
	for it := range q.Left() {
		c.failed = append(c.failed, failure{item: it, reason: reason})
	}
}

// inFlight lists what a worker took and never brought back, because it is
// still away.
func (c *captured) inFlight(q *workqueue.Queues) {
	known := map[uint32]bool{}
	for _, r := range c.recorded {
		known[r.item.Index] = true
	}
	for _, f := range c.failed {
		known[f.item.Index] = true
	}
	for it := range q.All() {
		if !known[it.Index] {
			c.failed = append(c.failed, failure{item: it, reason: kcdata.LeftOutError, errno: unix.ETIMEDOUT})
		}
	}
}

// times derives the durations of the file from the workers' stamps.
func (c *captured) times(team []*worker) {
	var taken, arrivedFirst, arrivedLast, window, releasedFirst, releasedLast, back int64
	for _, w := range team {
		s := w.stamp
		if !w.away && s.arrived != 0 {
			c.capture.StopBroken += s.switches // also of one that was moved off its CPU
		}
		if w.away || !s.in {
			continue
		}
		from, to := w.heldCPU()
		taken, back = earlier(taken, from), max(back, to)
		arrivedFirst, arrivedLast = earlier(arrivedFirst, s.arrived), max(arrivedLast, s.arrived)
		window = max(window, s.window)
		releasedFirst, releasedLast = earlier(releasedFirst, s.released), max(releasedLast, s.released)
		if s.main {
			c.capture.CensusNs = uint64(s.census)
		}
	}
	c.capture.StopNs = uint64(taken)
	c.capture.StoppedNs = uint64(back - taken)
	c.capture.ArrivalNs = uint64(arrivedLast - arrivedFirst)
	c.capture.WindowNs = uint64(max(releasedFirst-window, 0))
	c.capture.ReleaseNs = uint64(releasedLast - releasedFirst)
}

// heldInVain is how long a stop that was given up took the CPUs that had come.
func heldInVain(team []*worker) time.Duration {
	var taken, left int64
	for _, w := range team {
		if !w.away && w.stamp.arrived != 0 {
			taken, left = earlier(taken, w.stamp.taken), max(left, w.stamp.left)
		}
	}
	return time.Duration(left - taken)
}

func earlier(a, b int64) int64 {
	if a == 0 || b < a {
		return b
	}
	return a
}

func (c *captured) memory(m *memory) {
	total := m.alloc.Total()
	c.capture.BufferSize = uint64(len(m.data))
	c.capture.BufferUsed = total.Used
	c.capture.Overhead = total.Overhead
	c.arenas = arenasOf(m)
	if err := m.alloc.Err(); err != nil {
		c.warn("arena", err.Error())
	}
	if !m.locked {
		c.warn("memory_not_locked", "the buffers could not be locked in memory (CAP_IPC_LOCK, RLIMIT_MEMLOCK)")
	}
}
