package engine

import (
	"stackshot/internal/bpf"
	"stackshot/internal/limits"
)

// Hooks let tests change what a worker or the coordinator does, and let benchmarks measure
// the steps between a request and its stop. The command sets none. Constant after Open.
type Hooks struct {
	BeforeWake    func() // in the coordinator
	BeforeArrival func(cpu int)
	Parked        func(cpu int) // in a worker, before it looks whether it is called
	Opening       func(cpu int) // in the main worker, about to open the gate
	Fetching      func()        // in the main worker, about to move the coordinator
	Cancelled     func()        // in the coordinator's context, before the stop is ended early
	Recorded      func(cpu int)
	NoFIFO        bool                           // as where SCHED_FIFO is refused
	Specs         bpf.Specs                      // in place of the committed BPF objects
	TrapReady     func(*bpf.Trap)                // in the coordinator, before each stop of engine trap
	InWindow      func(cpu int)                  // engine pull
	LateThreads   int                            // in place of collate's bound
	Released      func()                         // by the coordinator, after the last try, before /proc is read
	Reached       func(Stage)                    // by the coordinator, before the wake
	AnyClock      bool                           // engine trap takes any clock source
	KeepUserSide  bool                           // user stacks and mappings go into the file as the window took them
	DirectMap     func() (*bpf.DirectMap, error) // in place of bpf.FindDirectMap
	Throttles     func([]int) map[int]string     // in place of topology.Throttles
	FewPids       *limits.Room                   // in place of what is left
	LittleMemory  *limits.Room
}

func (h *Hooks) FindDirectMap() func() (*bpf.DirectMap, error) {
	if h.DirectMap != nil {
		return h.DirectMap
	}
	return bpf.FindDirectMap
}

// Stage is a step between a request and the wake. Hooks.Reached is called at its end.
type Stage int

const (
	StageScope Stage = iota
	StageLock
	StagePrepare
	StageAttach
	StageQuiet
	StageCount
)

func (h *Hooks) Reach(s Stage) {
	if h.Reached != nil {
		h.Reached(s)
	}
}
