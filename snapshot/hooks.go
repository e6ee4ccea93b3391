package snapshot

import (
	"stackshot/internal/bpf"
	"stackshot/internal/limits"
)

// hooks are called by tests to bend a worker's turn, and by benchmarks to see
// where the time between a request and its stop goes. Constant after Open.
type hooks struct {
	beforeWake    func() // in the coordinator
	beforeArrival func(cpu int)
	parked        func(cpu int) // in a worker, before it looks whether it is called
	opening       func(cpu int) // in the main worker, about to open the gate
	fetching      func()        // in the main worker, about to move the coordinator
	cancelled     func()        // in the coordinator's context, before the stop is ended early
	recorded      func(cpu int)
	noFIFO        bool                           // as where SCHED_FIFO is refused
	specs         bpf.Specs                      // in place of the committed BPF objects
	trapReady     func(*bpf.Trap)                // in the coordinator, before each stop of engine trap
	inWindow      func(cpu int)                  // engine pull
	reached       func(stage)                    // by the coordinator, before the wake
	anyClock      bool                           // engine trap takes any clock source
	asTaken       bool                           // user stacks and mappings go into the file as the window took them
	directMap     func() (*bpf.DirectMap, error) // in place of bpf.FindDirectMap
	throttles     func([]int) map[int]string     // in place of topology.Throttles
	fewPids       *limits.Room                   // in place of what is left
	littleMemory  *limits.Room
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
