package snapshot

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
	"stackshot/internal/engine/trap"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// outWithin is how long a CPU may stay in the trap after the kernel has panicked.
const outWithin = time.Millisecond

// panicker plays the panic program: at a random moment it makes the word of the stop
// PANICKED, from a CPU in the trap (committed, drained) or from one that is about to arrive.
type panicker struct {
	t      *testing.T
	engine *trap.Engine
	phase  stop.Phase
	after  time.Duration
	actor  int
	at     atomic.Uint64 // CLOCK_MONOTONIC ns; 0: not yet
}

// hooks of a session whose workers the panicker is among.
func (p *panicker) hooks(allMaps bool) engine.Hooks {
	return engine.Hooks{
		Specs: bpftest.Knobs{AllMaps: allMaps},
		BeforeArrival: func(cpu int) {
			if p.phase != stop.PhaseArriving || cpu != p.actor {
				return
			}
			for by := clock.Nanotime() + int64(p.after); clock.Nanotime() < by; {
			}
			p.play()
		},
		TrapReady: func(l *bpf.Trap) {
			p.at.Store(0)
			for cpu := range l.Workers {
				d := bpftest.Delay{}
				if cpu == p.actor && p.phase != stop.PhaseArriving {
					d.PanicNs, d.PanicPhase = uint32(p.after), uint32(p.phase)
				}
				if err := l.Map(bpftest.Delays).Put(uint32(cpu), d); err != nil {
					p.t.Error(err)
				}
			}
		},
	}
}

// play does what end_stop of internal/bpf/panic.bpf.c does.
func (p *panicker) play() {
	word := &p.engine.Loaded.Stop.Word
	for {
		now, old := clock.Nanotime(), atomic.LoadUint64(word)
		if ph := stop.PhaseOf(old); ph != stop.PhaseArriving {
			return
		}
		if atomic.CompareAndSwapUint64(word, old, old&^0xff|uint64(stop.PhasePanicked)) {
			p.at.Store(uint64(now))
			return
		}
	}
}

// panicked is when the word was changed; 0: it was not.
func (p *panicker) panicked() uint64 {
	if p.phase == stop.PhaseArriving {
		return p.at.Load()
	}
	var d bpftest.Delay
	if err := p.engine.Loaded.Map(bpftest.Delays).Lookup(uint32(p.actor), &d); err != nil {
		p.t.Fatal(err)
	}
	return d.Panicked
}

// out is how long after at the last of the other CPUs left the trap.
func (p *panicker) out(at uint64) (longest time.Duration) {
	for cpu, k := range p.engine.Loaded.Workers {
		left := k.Left
		if left == 0 {
			left = k.Decided // it turned nothing off, and left where it saw the phase
		}
		if cpu != p.actor && left > at {
			longest = max(longest, time.Duration(left-at))
		}
	}
	return longest
}

// once makes one stop, and reports how long the CPUs took to leave it; 0: the machine was
// released before anybody panicked.
func (p *panicker) once(s *Session) time.Duration {
	_, err := oneTry(p.engine, p.t, s)
	l, at := p.engine.Loaded, p.panicked()
	if at == 0 {
		if err != nil && !errors.Is(err, engine.ErrNotStopped) {
			p.t.Errorf("nobody panicked: %v", err)
		}
		return 0
	}
	if ph := stop.PhaseOf(l.Stop.Word); ph != stop.PhasePanicked || !errors.Is(err, engine.ErrPanics) {
		p.t.Errorf("panicked while %v: then the phase is %v, the error %v", p.phase, ph, err)
	}
	if p.phase != stop.PhaseDrained && (l.Stop.VerifyNext != 0 || l.Stop.Seconds != 0) {
		p.t.Errorf("panicked while %v, and the second pass began", p.phase)
	}
	if _, err := oneTry(p.engine, p.t, s); !errors.Is(err, engine.ErrPanics) || l.Stop.SeenTasks != 0 && p.phase == stop.PhaseArriving {
		p.t.Errorf("a stop in a kernel that has panicked: %v", err)
	}
	atomic.StoreUint64(&l.Stop.Word, 0) // this kernel has not
	return p.out(at)
}

// A kernel that panics in the middle of a stop has its CPUs back within a millisecond,
// whatever they were doing. This machine goes on, and the next capture is whole.
func TestPanicEndsAStop(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireTrap(t)
	requireTwoCPUs(t)
	testtask.Start(t, testtask.Bystanders(200), testtask.ManyThreads(testneed.Length(1000, 4000)))
	for range 8 {
		startMapper(t, "dense", 1400) // a long walk over mappings
	}
	for _, allMaps := range []bool{false, true} {
		p := &panicker{t: t}
		s := openTest(t, Options{Engine: EngineTrap, MaxPause: time.Second, ArrivalBudget: time.Second, Buffer: 64 << 20}, p.hooks(allMaps))
		p.engine = s.engine.(*trap.Engine)
		for _, phase := range []stop.Phase{stop.PhaseArriving, stop.PhaseCommitted, stop.PhaseDrained} {
			p.many(s, phase, testneed.Length(30, 200))
		}
		p.actor = -1
		if _, snap, _ := captureWhole(t, s, Request{}); len(snap.Tasks) < 200 {
			t.Errorf("the next capture has %d tasks", len(snap.Tasks))
		}
	}
}

// many panics n times in one phase. A host may take a CPU away meanwhile, so one stop in
// twenty may take longer.
func (p *panicker) many(s *Session, phase stop.Phase, n int) {
	var took []time.Duration
	for i := 0; len(took) < n && i < 4*n; i++ {
		p.phase, p.actor = phase, s.plan.Stop[i%2]
		if phase == stop.PhaseArriving { // main is in the trap then
			p.actor = s.plan.Stop[flagInt(s.plan.Main == s.plan.Stop[0])]
		}
		p.after = slow(1 + rand.N(map[stop.Phase]time.Duration{
			stop.PhaseArriving: time.Millisecond, stop.PhaseCommitted: 6 * time.Millisecond, stop.PhaseDrained: 300 * time.Microsecond,
		}[phase]))
		if d := p.once(s); d != 0 {
			took = append(took, d)
		}
	}
	slices.Sort(took)
	if len(took) < n/2 {
		p.t.Errorf("%v: %d of %d stops ended by a panic", phase, len(took), n)
		return
	}
	most, worst := took[len(took)*19/20], took[len(took)-1]
	p.t.Logf("%v: %d stops ended by a panic, CPUs out after %v (half), %v (19 of 20), %v (all)", phase, len(took), took[len(took)/2], most, worst)
	if most > slow(outWithin) || worst > slow(20*outWithin) {
		p.t.Errorf("%v: CPUs were out of the trap after %v (19 of 20), %v (all), want %v", phase, most, worst, slow(outWithin))
	}
}
