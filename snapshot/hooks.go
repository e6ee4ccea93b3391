package snapshot

import (
	"time"

	"stackshot/internal/bpf"
)

// hooks are called by tests to bend a worker's turn, and by benchmarks to see
// where the time between a request and its stop goes. Constant after Open.
type hooks struct {
	beforeWake    func() // in the coordinator
	beforeArrival func(cpu int)
	recorded      func(cpu int)
	noFIFO        bool                           // as where SCHED_FIFO is refused
	allMaps       bool                           // every process's mappings are recorded in the window
	staleTid      int                            // engine trap records this thread as if it ran once before the second pass
	inWindow      func(cpu int)                  // engine pull
	reached       func(stage)                    // by the coordinator, before the wake
	asTaken       bool                           // user stacks and mappings go into the file as the window took them
	directMap     func() (*bpf.DirectMap, error) // in place of bpf.FindDirectMap
	waiting       int                            // in place of maxWaiting

	// Engine trap, asked before the stop: how long a CPU spins between decision
	// and interrupts off, and in the window before it records.
	lateHold, longWindow func(cpu int) time.Duration
}

func (h *hooks) findDirectMap() func() (*bpf.DirectMap, error) {
	if h.directMap != nil {
		return h.directMap
	}
	return bpf.FindDirectMap
}

// stage is a step between a request and the wake; the hook hears of its end.
type stage int

const (
	stageScope stage = iota
	stageLock
	stagePrepare
	stageAttach
	stageQuiet
	stageCount
)

func (h *hooks) reach(s stage) {
	if h.reached != nil {
		h.reached(s)
	}
}
