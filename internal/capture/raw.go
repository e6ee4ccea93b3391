package capture

import (
	"iter"
	"slices"

	"golang.org/x/sys/unix"

	"stackshot/internal/clock"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// Raw is one capture as it was made: plain data, from which collation makes the file,
// here or in another process. It refers to no worker and no session. The engine lends
// the bytes of its parts until its Release. Collation changes records in these bytes, so
// a Raw can be collated only once. Who fills what:
//
//	engine     the whole first group; of the second Second, Phases, Arenas, its Trace
//	tries      Tries, the Trace of all tries, Samples
//	session    Request, Asked, Wants, At, State, KeepTrace, further Warnings
type Raw struct {
	Engine, Isolation string
	Recorded          []Part
	Failed            []Failure
	CPUs              []kcdata.LinuxCPU
	Moved             []int // CPUs that were missed because their worker was not there; warning worker_moved says so
	Capture           kcdata.LinuxCapture
	SeenTasks         int
	SeenThreads       int
	RanShort          bool     // memory ran out
	WaitSources       uint32   // kcdata.WaitHas*: what the kernel tells of waits; 0: they were not recorded
	FileSources       uint32   // kcdata.FilesHas*: what the window tells of open files
	Ends              *Ends    // nil: nothing was looked for after the release; the session fills it
	Cgroups           *Cgroups // nil: nobody looked; the session fills it
	QueueFull         bool     // the memory that ran out was that of the queues
	WholeCensus       bool
	CensusErr         unix.Errno
	Warnings          []kcdata.Warning

	Second    *Second // nil: nothing was read twice
	Phases    []kcdata.LinuxPhases
	Arenas    []kcdata.LinuxArena
	Tries     []kcdata.LinuxTry
	Trace     []kcdata.LinuxTrace
	KeepTrace bool                     // the caller asked for the trace
	Latency   kcdata.LatencyCollection // as far as it is known
	At        clock.Moment             // of the stop; where nothing was stopped, when all was recorded
	Wants     Wants
	Request   string   // as words; "": the whole machine
	Asked     []uint32 // thread groups that were asked for; nil: all
	State     machineState
	Panic     *kcdata.LinuxPanic // nil: neither a panic nor a SysRq began it
	Hook      *Hook              // nil: no thread stands in a hook
	Samples   []Sample           // of CPUs that were not stopped, taken after the release
}

// Hook says whose kernel stack begins with the frames of a hook, which are cut.
type Hook struct {
	Thread    uint64   // the thread's container
	Functions []string // that are hooked
	Caller    uint64   // of the hooked function, to be put behind its frame; 0: the stack has it
	Cut       bool     // by collation: a frame in one of Functions was found
}

// NoteOnCPU writes into a CPU's record that a thread was on it, for captures that stop nobody. cpu -1 is none.
func (c *Raw) NoteOnCPU(cpu int, tid, tgid uint32) {
	for i := range c.CPUs {
		if r := &c.CPUs[i]; int(r.CPU) == cpu && r.Flags&kcdata.CPURanKnown == 0 {
			r.Flags |= kcdata.CPURanKnown
			r.RanTid, r.RanTgid = tid, tgid
			if tid == 0 {
				r.Flags |= kcdata.CPUIdle
			}
		}
	}
}

// Part is one part of one task, by its place in the census.
type Part struct {
	Item    workqueue.Item
	Threads uint32
	Pieces  [][]byte // of its stream, in order; lent by the engine
	Spans   []Span   // of a capture that is not in memory (collate.Collator.Load): where the pieces before Pieces are
	Cost    Cost
	Hidden  bool // read from /proc afterwards: not part of the stop
}

// Span is a place in whatever a capture is read from, bytes.
type Span struct{ Off, Len uint64 }

// Failure is an item that was taken and could not be recorded.
type Failure struct {
	Item   workqueue.Item
	Reason uint32 // kcdata.LeftOut*
	Errno  unix.Errno
}

func (c *Raw) Add(it workqueue.Item, threads uint32, pieces [][]byte, spent Cost) {
	c.Recorded = append(c.Recorded, Part{Item: it, Threads: threads, Pieces: pieces, Cost: spent})
}

// Tasks gives the parts of each recorded task, in order.
func (c *Raw) Tasks() iter.Seq[[]Part] {
	return func(yield func([]Part) bool) {
		list := c.InOrder()
		for first, i := 0, 0; first < len(list); first = i {
			for i < len(list) && list[i].Item.Index == list[first].Item.Index {
				i++
			}
			if !yield(list[first:i]) {
				return
			}
		}
	}
}

// InOrder sorts by census index: order never comes from time (invariant 4 of
// snapshot/doc.go). Parts of a task are added in the order of their threads, and stay in it.
func (c *Raw) InOrder() []Part {
	slices.SortStableFunc(c.Recorded, func(a, b Part) int { return int(a.Item.Index) - int(b.Item.Index) })
	return c.Recorded
}

func (c *Raw) StoppedCPU(id int) bool { return c.flagged(id, kcdata.CPUStopped) }
func (c *Raw) MissedCPU(id int) bool  { return c.flagged(id, kcdata.CPUMissed) }

func (c *Raw) flagged(id int, flag uint32) bool {
	return slices.ContainsFunc(c.CPUs, func(r kcdata.LinuxCPU) bool { return int(r.CPU) == id && r.Flags&flag != 0 })
}

// Wants says how the file is to be made: the options on which collation depends.
type Wants struct {
	Redact     bool // no user stacks, no mappings, no arguments, addresses relative to _text
	Timed      bool // the file says what recording cost
	UserStacks UserStacks
	UserFrames int  // of a user stack, at most
	KeepStacks bool // chains and bytes of user stacks stay in the file
}

// UserStacks is what was taken of user stacks.
type UserStacks int

const (
	NoStacks    UserStacks = iota
	ChainStacks            // frame-pointer chains
	WholeStacks            // and the bytes of the stacks
)

// machineState is the load of the machine, as texts of /proc.
type machineState struct{ Loadavg, Meminfo, Pressure string }

// Sample is what one CPU that was not stopped ran, and where.
type Sample struct {
	CPU       int
	Tid, Tgid uint32 // 0: idle, or a thread that our pid namespace does not show
	Comm      string
	Idle      bool
	User      bool   // in user mode
	At        uint64 // CLOCK_MONOTONIC, ns
	IP        uint64
	Kernel    []uint64 // leaf first: where the thread was, then return addresses
	UserStack []uint64 // likewise; none with bpf.Config.Redact
	Delay     uint64   // after the window's end, ns
	Ran       bool     // the record of its CPU says by this sample what the CPU ran
}

func (c *Raw) Warn(code, text string) {
	c.Warnings = append(c.Warnings, kcdata.Warning{Code: code, Text: text})
}

// RecordedTasks are the tasks (tgids) of which something is recorded.
func (c *Raw) RecordedTasks() map[int]bool {
	have := map[int]bool{}
	for _, r := range c.Recorded {
		have[int(r.Item.Tgid)] = true
	}
	return have
}

// KnownTasks are the tasks that were recorded or left out.
func (c *Raw) KnownTasks() map[int]bool {
	have := c.RecordedTasks()
	for _, f := range c.Failed {
		have[int(f.Item.Tgid)] = true
	}
	return have
}

// Troubled reports whether something went wrong in the capture. Then the file has the
// trace, even if nobody asked for it.
func (c *Raw) Troubled() bool {
	if c.Capture.StopBroken > 0 || len(c.Failed) > 0 {
		return true
	}
	return slices.ContainsFunc(c.CPUs, func(r kcdata.LinuxCPU) bool { return r.Flags&kcdata.CPUMissed != 0 }) ||
		slices.ContainsFunc(c.Tries, func(y kcdata.LinuxTry) bool { return y.Outcome != kcdata.TryWhole })
}

// PriorNs is the stopped time of the tries before the last.
func (c *Raw) PriorNs() uint64 {
	last := c.Capture.ArrivalNs + c.Capture.WindowNs + c.Capture.ReleaseNs
	if c.Capture.Tries < 2 || c.Capture.StoppedNs < last {
		return 0
	}
	return c.Capture.StoppedNs - last
}

// Cost is where the time for one item went, ns; all 0 with snapshot.LatencyOff. Under
// engine pull, Threads includes the task's head.
type Cost struct{ Setup, Head, Threads, End int64 }

func (a Cost) Plus(b Cost) Cost {
	return Cost{a.Setup + b.Setup, a.Head + b.Head, a.Threads + b.Threads, a.End + b.End}
}

// IdleTask is the tgid of the kernel's idle task.
const IdleTask = 0
