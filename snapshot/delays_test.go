package snapshot

import (
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/engine"
)

// lateHold are hooks by which a CPU of engine trap spins between the decision and
// interrupts off, for as long as of says before each stop.
func lateHold(of func(cpu int) time.Duration) engine.Hooks {
	return delayed(func(cpu int) bpftest.Delay { return bpftest.Delay{HoldNs: uint32(of(cpu))} })
}

// longWindow are hooks by which it spins in the window, before it records.
func longWindow(of func(cpu int) time.Duration) engine.Hooks {
	return delayed(func(cpu int) bpftest.Delay { return bpftest.Delay{WindowNs: uint32(of(cpu))} })
}

func delayed(of func(cpu int) bpftest.Delay) engine.Hooks {
	return engine.Hooks{Specs: bpftest.Knobs{}, TrapReady: func(t *bpf.Trap) {
		for cpu := range t.Workers {
			if t.Workers[cpu].Tid == 0 {
				continue // nobody of ours runs there
			}
			if err := t.Map(bpftest.Delays).Put(uint32(cpu), of(cpu)); err != nil {
				panic(err)
			}
		}
	}}
}
