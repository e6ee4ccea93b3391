// Package bpftest has BPF objects that only tests load: those of the engines, with
// what tests and benchmarks ask of them (knobs.h, trap_knobs.h), and the programs of
// mapletest.bpf.c. Only tests import it, so nothing of it is in the command.
// `go generate ./internal/bpf` makes the objects.
package bpftest

import (
	"errors"
	"structs"

	"github.com/cilium/ebpf"
)

// Knobs is what is asked of the objects of the engines when they are loaded. It is a
// bpf.Specs. The zero value asks for nothing; with it the programs do what those do
// that ship, and obey Delays.
type Knobs struct {
	AllMaps  bool   // record the mappings of every process in the window
	NoFields bool   // no task names the lock that it waits for: what a scan finds counts
	StaleTid uint32 // the trap records this thread as if it ran once more before the second pass; 0: none
	Floor    bool   // the trap unwinds each thread and records nothing: the least a thread can cost
}

// Pull gives the object of engine pull.
func (k Knobs) Pull() (*ebpf.CollectionSpec, error) {
	spec, err := LoadPull()
	if err != nil {
		return nil, err
	}
	return spec, k.set(spec)
}

// Trap gives the object of engine trap.
func (k Knobs) Trap() (*ebpf.CollectionSpec, error) {
	spec, err := LoadTrap()
	if err != nil {
		return nil, err
	}
	return spec, errors.Join(k.set(spec), spec.Variables["test_floor"].Set(word(k.Floor)))
}

func (k Knobs) set(spec *ebpf.CollectionSpec) error {
	return errors.Join(spec.Variables["test_all_maps"].Set(word(k.AllMaps)), spec.Variables["test_no_fields"].Set(word(k.NoFields)),
		spec.Variables["test_stale_tid"].Set(k.StaleTid))
}

func word(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// Delays is the map of the trap's object that has a Delay for each CPU number.
const Delays = "test_delays"

// Delay mirrors struct test_delay (trap_knobs.h): how long a CPU spins, ns.
type Delay struct {
	_          structs.HostLayout
	HoldNs     uint32 // between the decision and interrupts off
	WindowNs   uint32 // in the window, before it records
	PanicNs    uint32 // likewise, or before the second pass: then it does to the stop's word what a panic does
	PanicPhase uint32 // in this phase
	Panicked   uint64 // when it did, CLOCK_MONOTONIC ns; the program's
}
