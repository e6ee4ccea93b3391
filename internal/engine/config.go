package engine

import (
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/topology"
)

// Config is what the engines that stop the machine are opened with. It is constant
// but for the plan, which changes between two captures alone.
type Config struct {
	Plan          *topology.Plan
	Bpf           bpf.Config    // what the programs are loaded with
	UserWhy       error         // why there are no user stacks; nil: there are, or none are wanted
	ArrivalBudget time.Duration // wake to last arrival
	Buffer        int64         // bytes for the records of the first try; 0: estimated
	MaxBuffer     int64         // bytes it may grow to
	Prompt        bool          // the switch hook stays attached
	Hooks         Hooks
}

// Levels of bpf.Config.Latency (cfg_latency, internal/bpf/shared.h).
const (
	LevelOff = iota
	LevelTask
	LevelThread
)
