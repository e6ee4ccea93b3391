package engine

import (
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/topology"
)

// Config is what an engine that stops the machine needs when it is opened. It is
// constant, except that the plan may change between two captures.
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
