package snapshot

import (
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
)

// OptionError names an option whose value cannot be used.
type OptionError = engine.OptionError

// TryFIFO says why workers could not hold their CPUs; nil if they can. It asks
// on a thread made for it and ended after it.
func TryFIFO() error { return stop.TryFIFO() }

func badOption(option, value, reason string) error {
	return &OptionError{Option: option, Value: value, Reason: reason}
}
