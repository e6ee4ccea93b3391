package snapshot

import (
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/topology"
)

// config is what the engines that stop the machine are opened with. It is constant
// but for the plan, which changes between two captures alone.
type config struct {
	plan          *topology.Plan
	bpf           bpf.Config    // what the programs are loaded with
	userWhy       error         // why there are no user stacks; nil: there are, or none are wanted
	arrivalBudget time.Duration // wake to last arrival
	buffer        int64         // bytes for the records of the first try; 0: estimated
	maxBuffer     int64         // bytes it may grow to
	prompt        bool          // the switch hook stays attached
	hooks         hooks
}

// Levels of bpf.Config.Latency (cfg_latency, internal/bpf/shared.h).
const (
	levelOff = iota
	levelTask
	levelThread
)
