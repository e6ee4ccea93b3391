package stop

import (
	"fmt"
	"testing"
)

// The exhaustive test runs every interleaving of every worker's steps over the
// real State (each step is one call, each call is atomic on one word), for
// up to three workers, with any of them never arriving, late, or leaving at
// its own deadline, and the kernel panicking at any moment or not at all, and checks
// invariant 3 in every reachable end.

type modelWorker struct {
	main    bool
	pc      int  // 0 before arrival, 1 waiting, 2 in the window, 3 finished, 4 left
	in      bool // arrive said yes
	entered bool
}

type stopModel struct {
	word    uint64
	want    int
	workers [3]modelWorker
	n       int
}

// panics is what the panic program does to the word (internal/bpf/panic.bpf.c, end_stop).
// False: no capture holds the machine.
func (m stopModel) panics() (stopModel, bool) {
	p := PhaseOf(m.word)
	if p != PhaseArriving && p != PhaseCommitted && p != PhaseDrained {
		return m, false
	}
	m.word = withPhase(m.word, PhasePanicked)
	return m, true
}

func (m stopModel) key() string { return fmt.Sprint(m.word, m.workers[:m.n]) }

func (m stopModel) step(i, choice int) (stopModel, bool) {
	var s State
	s.Want = uint64(m.want)
	s.Word.Store(m.word)
	w := &m.workers[i]
	switch {
	case w.pc == 0 && choice == 0:
		w.in = s.Arrive(w.main)
		w.pc = 1
		if !w.in {
			w.pc = 4
		}
	case w.pc == 0 && choice == 1: // never comes
		w.pc = 4
	case w.pc == 0 && choice == 2: // comes past the deadline
		s.Expire()
		if s.Arrive(w.main) {
			panic("arrived past the deadline")
		}
		w.pc = 4
	case w.pc == 1 && choice == 0: // looks at the word
		switch s.Phase() {
		case PhaseArriving:
			return m, false
		case PhaseAborted, PhasePanicked:
			w.pc = 4
		default:
			w.pc, w.entered = 2, true
		}
	case w.pc == 1 && choice == 1: // its arrival deadline passes
		switch s.Expire() {
		case PhaseAborted, PhasePanicked:
			w.pc = 4
		case PhaseArriving:
			panic("expire left the decision open")
		default:
			w.pc, w.entered = 2, true
		}
	case w.pc == 2 && choice == 0:
		s.Finish()
		w.pc = 3
	case w.pc == 3 && choice == 0: // waits for drained or released
		if p := s.Phase(); p == PhaseCommitted {
			return m, false
		}
		s.Release()
		w.pc = 4
	case w.pc == 3 && choice == 1: // leaves at its own deadline
		s.Release()
		w.pc = 4
	default:
		return m, false
	}
	m.word = s.Word.Load()
	return m, true
}

func TestInvariant3OneDecision(t *testing.T) {
	for n := 1; n <= 3; n++ {
		start := stopModel{want: n, n: n, word: uint64(PhaseArriving)}
		start.workers[0].main = true
		seen, ends := map[string]bool{}, 0
		explore(t, start, PhaseArriving, seen, &ends)
		if ends == 0 || len(seen) < n*4 {
			t.Fatalf("%d workers: %d states, %d ends: the model does not move", n, len(seen), ends)
		}
		t.Logf("%d workers: %d states, %d ends", n, len(seen), ends)
	}
}

func explore(t *testing.T, m stopModel, before Phase, seen map[string]bool, ends *int) {
	t.Helper()
	checkModel(t, m, before)
	if seen[m.key()] {
		return
	}
	seen[m.key()] = true
	moved := false // by a worker: nobody may wait for a panic
	if next, ok := m.panics(); ok {
		explore(t, next, PhaseOf(m.word), seen, ends)
	}
	for i := range m.n {
		for choice := range 3 {
			if next, ok := m.step(i, choice); ok {
				moved = true
				explore(t, next, PhaseOf(m.word), seen, ends)
			}
		}
	}
	if !moved {
		*ends++
		for i, w := range m.workers[:m.n] {
			if w.pc != 4 {
				t.Fatalf("worker %d is stuck at step %d: %s", i, w.pc, m.key())
			}
		}
	}
}

var successors = map[Phase][]Phase{
	PhaseArriving:  {PhaseArriving, PhaseCommitted, PhaseAborted, PhasePanicked},
	PhaseCommitted: {PhaseCommitted, PhaseDrained, PhaseReleased, PhasePanicked},
	PhaseDrained:   {PhaseDrained, PhaseReleased, PhasePanicked},
	PhaseReleased:  {PhaseReleased},
	PhaseAborted:   {PhaseAborted},
	PhasePanicked:  {PhasePanicked},
}

func checkModel(t *testing.T, m stopModel, before Phase) {
	t.Helper()
	now := PhaseOf(m.word)
	ok := false
	for _, p := range successors[before] {
		ok = ok || p == now
	}
	if !ok {
		t.Fatalf("%v → %v: %s", before, now, m.key())
	}
	in, busy := uint64(0), uint64(0)
	for _, w := range m.workers[:m.n] {
		if w.in {
			in++
		}
		if w.in && w.pc < 3 {
			busy++
		}
		if w.entered && now == PhaseAborted {
			t.Fatalf("a worker is in the window of an aborted stop: %s", m.key())
		}
		if w.entered && !w.in {
			t.Fatalf("a worker that was not counted is in the window: %s", m.key())
		}
	}
	if ArrivedOf(m.word) != in {
		t.Fatalf("%d arrived, word says %d", in, ArrivedOf(m.word))
	}
	if now == PhaseCommitted && BusyOf(m.word) != busy {
		t.Fatalf("%d busy, word says %d: %s", busy, BusyOf(m.word), m.key())
	}
	if BusyOf(m.word) > in {
		t.Fatalf("%d busy of %d: %s", BusyOf(m.word), in, m.key())
	}
	if now == PhaseDrained && busy != 0 {
		t.Fatalf("drained with %d busy: %s", busy, m.key())
	}
}

func TestStateStopsEarly(t *testing.T) {
	var s State
	s.Begin(1)
	if s.Recording() {
		t.Fatal("recording before the decision")
	}
	s.Arrive(true)
	if !s.Recording() {
		t.Fatal("not recording after the commit")
	}
	s.NoSpace()
	if s.Recording() || !s.RanShort() {
		t.Fatal("still recording after the memory ran out")
	}
	s.Finish()
	if s.Phase() != PhaseDrained {
		t.Fatalf("phase %v, want drained", s.Phase())
	}
}

// In a kernel that panics nobody records, whatever else happens to the word, and no try begins.
func TestPanickedIsFinal(t *testing.T) {
	var s State
	s.Begin(1)
	s.Arrive(true)
	s.Word.Store(withPhase(s.Word.Load(), PhasePanicked))
	for _, do := range []func(){s.Finish, s.Release, s.NoSpace, s.stopEarly, func() { s.Expire() }, func() { s.Arrive(false) }, func() { s.Begin(1) }} {
		if do(); s.Phase() != PhasePanicked || s.Recording() {
			t.Fatalf("phase %v, recording %v", s.Phase(), s.Recording())
		}
	}
}
