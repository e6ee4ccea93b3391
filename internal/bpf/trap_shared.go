package bpf

import "structs"

// Stop mirrors struct stop (trap.h). Its first four words are stop.Words of
// internal/engine/stop/try.go. The writer of each field is named in trap.h.
type Stop struct {
	_           structs.HostLayout
	Word        uint64
	Want        uint64
	ArriveBy    int64
	PauseBy     int64
	ArriveNs    uint64
	PauseNs     uint64
	HoldNs      uint64
	Chunk       uint32
	Split       uint32
	Asked       uint32
	_           [15]uint32
	SeenTasks   uint64
	SeenThreads uint64
	CensusWhole uint32
	_           [27]uint32
	Pieces      uint32
	_           [31]uint32
	VerifyNext  uint32
	Seconds     uint32
	Verified    uint32
	Over        uint32
	_           [28]uint32
}

// TrapWorker mirrors struct trap_worker (trap.h): one worker, by CPU number.
// Times are CLOCK_MONOTONIC ns; 0: did not get there.
type TrapWorker struct {
	_       structs.HostLayout
	Tid     uint32
	Main    uint32
	Works   uint32
	Kind    uint32
	Cluster uint32
	Slot    uint32
	_       [26]uint32

	Entered  int64
	Arrived  int64
	Decided  int64
	Held     int64
	Drained  int64
	Checked  int64
	Verified int64
	Left     int64
	CensusNs int64
	ArriveBy int64 // the stop's deadlines, or those of its own entry where they are sooner
	PauseBy  int64
	In       uint32
	Level    uint32
	_        [10]uint32 // the program's own
	_        uint64     // since
	_        [2]uint64  // turns since then
	_        [2]uint32
	Spill    uint64
	_        [2]uint32
	_        [3]uint64 // clock, sums of the part
	UnwindNs uint64
	Compared uint32
	_        uint32
	Off      int64      // its interrupts are off (preemption, where they cannot be)
	Switched uint64     // context switches of its thread, at Left
	Broken   uint32     // of them, since Arrived
	_        [11]uint32 // the program's own, from thread to thread
}

// Bits of TrapWorker.Level: what was off while it recorded.
const (
	PreemptionOff = 1
	InterruptsOff = 2
)

// TrapPart mirrors struct trap_part (trap.h): what came of one item, by its
// number in the queue.
type TrapPart struct {
	_       structs.HostLayout
	Worker  uint32 // CPU plus one; 0: nobody took it
	State   uint32 // Part*
	Threads uint32
	Flags   uint32 // PartOpened, PartClosed
	Off     uint32
	Len     uint32
	More    uint32 // number of the next piece plus one; 0: none
	Verdict uint32 // Part*, of the second pass

	Switches  uint64 // sums over its threads
	Runtime   uint64 // ns
	SetupNs   uint32 // durations; 0 without latency
	HeadNs    uint32
	ThreadsNs uint32
	EndNs     uint32
}

// States and flags of a part (trap.h, enum part_state).
const (
	PartTaken    = 0 // its worker has not come back from it
	PartWhole    = 1
	PartVanished = 2
	PartCut      = 3 // the pause was spent
	PartNoRoom   = 4

	PartOpened = 1 // it has the begin of the task's container
	PartClosed = 2 // it has its end
)

// Verdicts of the second pass on a part (trap.h, enum part_verdict).
const (
	PartUnchecked = 0 // ours, idle threads, not whole, or no time was left
	PartUnchanged = 1
	PartChanged   = 2 // its threads are in Trap.Seconds
	PartUnnamed   = 3 // there was no room for all of them
	PartGone      = 4
)

// TrapSecond mirrors struct trap_second (trap.h): what a thread of a changed
// part counted in the second pass.
type TrapSecond struct {
	_        structs.HostLayout
	Tid      uint32
	Part     uint32 // item number
	Switches uint64
	Runtime  uint64 // ns
}

// TraceEvents is how many events a CPU's ring holds.
const TraceEvents = 256

// TraceEvent mirrors struct trace_event (trace.h).
type TraceEvent struct {
	_     structs.HostLayout
	At    uint64 // CLOCK_MONOTONIC, ns
	Datum uint64
	CPU   uint32
	Place uint32 // kcdata.Trace*
}

// TraceRing mirrors struct trace_ring (trace.h): one CPU's last events.
type TraceRing struct {
	_      structs.HostLayout
	Next   uint32 // events ever
	_      [31]uint32
	Events [TraceEvents]TraceEvent
}

// TrapPiece mirrors struct trap_piece (trap.h).
type TrapPiece struct {
	_    structs.HostLayout
	Off  uint32
	Len  uint32
	More uint32
	_    uint32
}
