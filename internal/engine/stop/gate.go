package stop

import (
	"fmt"
	"sync/atomic"

	"stackshot/internal/engine"

	"golang.org/x/sys/unix"
)

// Gate is what all workers wait at. The eventfds only wake. Words that carry the number of
// a try say for which worker the wake is, and which worker is through with which try. So
// a worker that comes loose from an earlier try takes no other worker's part in this
// one, is not counted in another's place, and cannot open the gate.
type Gate struct {
	all     int           // eventfd: a write wakes all that are parked; nobody reads it
	done    int           // eventfd: a worker rings when it is through
	Round   atomic.Uint64 // twice the number of the last try; the main worker adds 1: its gate is open
	closing atomic.Bool
	Hooks   engine.Hooks
}

// begin makes a new try the one that is under way. The coordinator alone.
func (g *Gate) begin() (number uint64) {
	number = g.Round.Load()>>1 + 1
	g.Round.Store(number << 1)
	return number
}

// open opens the gate of a try. False: another try is under way by now.
func (g *Gate) open(number uint64) bool { return g.Round.CompareAndSwap(number<<1, number<<1|1) }

// shut closes the gate of a try for good. False: it has been opened. The
// coordinator alone.
func (g *Gate) shut(number uint64) bool { return g.Round.CompareAndSwap(number<<1, (number+1)<<1) }

// opened reports whether the gate is open for this try, or the try is over.
func (g *Gate) opened(number uint64) (open, over bool) {
	round := g.Round.Load()
	return round == number<<1|1, round>>1 != number
}

func newGate() (*Gate, error) {
	all, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	done, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(all)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &Gate{all: all, done: done}, nil
}

func (g *Gate) close() {
	unix.Close(g.all)
	unix.Close(g.done)
}
