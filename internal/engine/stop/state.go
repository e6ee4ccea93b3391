package stop

import "sync/atomic"

// Phase is where one try stands. Successors stand on each constant.
//
//	            last to arrive, or the deadline
//	            with the main worker arrived
//	ARRIVING ─────────────────────────────► COMMITTED ──► DRAINED ──► RELEASED
//	   │  the deadline without                  │                        ▲
//	   ▼  the main worker                       └────────────────────────┘
//	ABORTED                                   a worker's own deadline passed
//
//	ARRIVING, COMMITTED, DRAINED ──► PANICKED: the kernel panics, and needs its CPUs
type Phase uint64

const (
	PhaseIdle      Phase = iota // → arriving
	PhaseArriving               // → committed, aborted, panicked
	PhaseCommitted              // recording → drained, released, panicked
	PhaseDrained                // all is recorded, the second pass runs → released, panicked
	PhaseReleased               // final
	PhaseAborted                // final
	PhasePanicked               // nobody holds a CPU any more, whatever is recorded; final
)

func (p Phase) String() string {
	return [...]string{"idle", "arriving", "committed", "drained", "released", "aborted", "panicked"}[p]
}

// State is the one word by which the workers of a try agree. Every change
// is a compare-and-swap of the whole word, so the order of decisions is the
// order of the word's values. A worker that loses a swap obeys what it then reads.
//
// Writers: Arrive, Expire, Finish, Release: the workers, in the window; Expire also
// the coordinator, when its own wait is over. NoSpace: any worker. stopEarly: the
// coordinator's context. Begin: the coordinator, while all are parked. The phase
// PANICKED: under engine trap, the panic program (internal/bpf/panic.bpf.c, end_stop).
//
//	bits 0-7   phase
//	bit  8     the main worker has arrived
//	bit  9     memory ran out: leave without taking another item
//	bit  10    stop early: the coordinator was cancelled
//	bits 16-31 arrived
//	bits 32-47 committed and not yet finished
//	bits 48-63 committed with interrupts off, engine trap only (internal/bpf/stop.h):
//	           recording begins when all are; committed → aborted if one waits too long
type State struct {
	Word atomic.Uint64
	// Want is how many workers make the stop complete. Constant from Begin to
	// the last Release.
	Want uint64
}

const (
	BitMain    = 1 << 8
	BitNoSpace = 1 << 9
	BitEarly   = 1 << 10

	ArrivedShift = 16
	BusyShift    = 32
	countMask    = 0xffff
)

func PhaseOf(w uint64) Phase    { return Phase(w & 0xff) }
func ArrivedOf(w uint64) uint64 { return w >> ArrivedShift & countMask }
func BusyOf(w uint64) uint64    { return w >> BusyShift & countMask }

func withPhase(w uint64, p Phase) uint64 { return w&^0xff | uint64(p) }

// Begin opens a try for want workers. In a kernel that panics it opens none: then the
// phase stays PANICKED, and whoever is woken leaves at once.
func (s *State) Begin(want int) {
	s.Want = uint64(want)
	for {
		old := s.Word.Load()
		if PhaseOf(old) == PhasePanicked || s.Word.CompareAndSwap(old, uint64(PhaseArriving)) {
			return
		}
	}
}

// Arrive counts a worker in. False: the decision has been taken without it,
// and it must leave. The last one to arrive commits in the same swap.
func (s *State) Arrive(main bool) bool {
	for {
		old := s.Word.Load()
		if PhaseOf(old) != PhaseArriving {
			return false
		}
		next := old + 1<<ArrivedShift
		if main {
			next |= BitMain
		}
		if ArrivedOf(next) == s.Want {
			next = commit(next)
		}
		if s.Word.CompareAndSwap(old, next) {
			return true
		}
	}
}

func commit(w uint64) uint64 {
	w &^= countMask << BusyShift
	return withPhase(w|ArrivedOf(w)<<BusyShift, PhaseCommitted)
}

// Expire is called by a worker whose clock has passed the arrival deadline. It
// takes the decision if nobody has: go on with those who are here if the main
// worker is among them, else give up. It returns the phase that holds.
func (s *State) Expire() Phase {
	for {
		old := s.Word.Load()
		if PhaseOf(old) != PhaseArriving {
			return PhaseOf(old)
		}
		next := withPhase(old, PhaseAborted)
		if old&BitMain != 0 {
			next = commit(old)
		}
		if s.Word.CompareAndSwap(old, next) {
			return PhaseOf(next)
		}
	}
}

// Finish says that a committed worker takes no more items.
func (s *State) Finish() {
	for {
		old := s.Word.Load()
		next := old - 1<<BusyShift
		if BusyOf(next) == 0 && PhaseOf(old) == PhaseCommitted {
			next = withPhase(next, PhaseDrained)
		}
		if s.Word.CompareAndSwap(old, next) {
			return
		}
	}
}

// Release is the first step back: whoever leaves first, drained or because its
// own deadline has passed, tells the others to follow.
func (s *State) Release() {
	for {
		old := s.Word.Load()
		if p := PhaseOf(old); p != PhaseCommitted && p != PhaseDrained {
			return
		}
		if s.Word.CompareAndSwap(old, withPhase(old, PhaseReleased)) {
			return
		}
	}
}

func (s *State) NoSpace()        { s.Word.Or(BitNoSpace) }
func (s *State) stopEarly()      { s.Word.Or(BitEarly) }
func (s *State) RanShort() bool  { return s.Word.Load()&BitNoSpace != 0 }
func (s *State) Phase() Phase    { return PhaseOf(s.Word.Load()) }
func (s *State) Recording() bool { return recordingWord(s.Word.Load()) }

// recordingWord: committed, and nobody has said to stop.
func recordingWord(w uint64) bool {
	return PhaseOf(w) == PhaseCommitted && w&(BitNoSpace|BitEarly) == 0
}
