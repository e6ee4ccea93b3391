package snapshot

import "sync/atomic"

// phase is where one try stands. Successors stand on each constant.
//
//	            last to arrive, or the deadline
//	            with the main worker arrived
//	ARRIVING ─────────────────────────────► COMMITTED ──► DRAINED ──► RELEASED
//	   │  the deadline without                  │                        ▲
//	   ▼  the main worker                       └────────────────────────┘
//	ABORTED                                   a worker's own deadline passed
type phase uint64

const (
	phaseIdle      phase = iota // → arriving
	phaseArriving               // → committed, aborted
	phaseCommitted              // recording → drained, released
	phaseDrained                // all is recorded, the second pass runs → released
	phaseReleased               // final
	phaseAborted                // final
)

func (p phase) String() string {
	return [...]string{"idle", "arriving", "committed", "drained", "released", "aborted"}[p]
}

// stopState is the one word by which the workers of a try agree. Every change
// is a compare-and-swap of the whole word, so the order of decisions is the
// order of the word's values, and who loses a swap obeys what it then reads.
//
// Writers: arrive, expire, finish, release: the workers, in the window.
// noSpace, stopEarly: any worker. begin: the coordinator, while all are parked.
//
//	bits 0-7   phase
//	bit  8     the main worker has arrived
//	bit  9     memory ran out: leave without taking another item
//	bit  10    stop early: the coordinator was cancelled
//	bits 16-31 arrived
//	bits 32-47 committed and not yet finished
//	bits 48-63 committed with interrupts off, engine trap only (internal/bpf/stop.h):
//	           recording begins when all are; committed → aborted if one waits too long
type stopState struct {
	word atomic.Uint64
	// want is how many workers make the stop complete. Constant from begin to
	// the last release.
	want uint64
}

const (
	bitMain    = 1 << 8
	bitNoSpace = 1 << 9
	bitEarly   = 1 << 10

	arrivedShift = 16
	busyShift    = 32
	countMask    = 0xffff
)

func phaseOf(w uint64) phase    { return phase(w & 0xff) }
func arrivedOf(w uint64) uint64 { return w >> arrivedShift & countMask }
func busyOf(w uint64) uint64    { return w >> busyShift & countMask }

func withPhase(w uint64, p phase) uint64 { return w&^0xff | uint64(p) }

// begin opens a try for want workers.
func (s *stopState) begin(want int) {
	s.want = uint64(want)
	s.word.Store(uint64(phaseArriving))
}

// arrive counts a worker in. False: the decision has been taken without it,
// and it must leave. The last one to arrive commits in the same swap.
func (s *stopState) arrive(main bool) bool {
	for {
		old := s.word.Load()
		if phaseOf(old) != phaseArriving {
			return false
		}
		next := old + 1<<arrivedShift
		if main {
			next |= bitMain
		}
		if arrivedOf(next) == s.want {
			next = commit(next)
		}
		if s.word.CompareAndSwap(old, next) {
			return true
		}
	}
}

func commit(w uint64) uint64 {
	w &^= countMask << busyShift
	return withPhase(w|arrivedOf(w)<<busyShift, phaseCommitted)
}

// expire is called by a worker whose clock has passed the arrival deadline. It
// takes the decision if nobody has: go on with those who are here if the main
// worker is among them, else give up. It returns the phase that holds.
func (s *stopState) expire() phase {
	for {
		old := s.word.Load()
		if phaseOf(old) != phaseArriving {
			return phaseOf(old)
		}
		next := withPhase(old, phaseAborted)
		if old&bitMain != 0 {
			next = commit(old)
		}
		if s.word.CompareAndSwap(old, next) {
			return phaseOf(next)
		}
	}
}

// finish says that a committed worker takes no more items.
func (s *stopState) finish() {
	for {
		old := s.word.Load()
		next := old - 1<<busyShift
		if busyOf(next) == 0 && phaseOf(old) == phaseCommitted {
			next = withPhase(next, phaseDrained)
		}
		if s.word.CompareAndSwap(old, next) {
			return
		}
	}
}

// release is the first step back: whoever leaves first, drained or because its
// own deadline has passed, tells the others to follow.
func (s *stopState) release() {
	for {
		old := s.word.Load()
		if p := phaseOf(old); p != phaseCommitted && p != phaseDrained {
			return
		}
		if s.word.CompareAndSwap(old, withPhase(old, phaseReleased)) {
			return
		}
	}
}

func (s *stopState) noSpace()        { s.word.Or(bitNoSpace) }
func (s *stopState) stopEarly()      { s.word.Or(bitEarly) }
func (s *stopState) ranShort() bool  { return s.word.Load()&bitNoSpace != 0 }
func (s *stopState) phase() phase    { return phaseOf(s.word.Load()) }
func (s *stopState) recording() bool { return recordingWord(s.word.Load()) }

// recordingWord: committed, and nobody has said to stop.
func recordingWord(w uint64) bool {
	return phaseOf(w) == phaseCommitted && w&(bitNoSpace|bitEarly) == 0
}
