package trap

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"stackshot/internal/bpf"
	"stackshot/internal/engine/stop"
	"stackshot/internal/testneed"
)

// The exhaustive test of the trap's own half of the stop word: the functions of
// internal/bpf/stop.h themselves, compiled for this machine, in every order of up to
// three workers' steps, with a kernel that panics at any moment or not at all. What the
// trap's program does between them (trap.bpf.c: count_in, hold, leave) is drawn by
// trapWorker, and the panic program's swap by panics.

// Steps, as testdata/stopword.c numbers them.
const (
	cArrive = iota
	cExpire
	cHold
	cFinish
	cRelease
	cAllHeld
	cNoSpace
)

type cRequest struct {
	Word, Want              uint64
	Op, Arg, GivesUp, Spare uint32
}

type cAnswer struct{ Word, Said uint64 }

// cStop is the running program. Answers depend on the request alone.
type cStop struct {
	t     *testing.T
	in    io.Writer
	out   io.Reader
	known map[cRequest]cAnswer
}

func startCStop(t *testing.T) *cStop {
	t.Helper()
	testneed.Program(t, "gcc")
	headers, err := filepath.Abs("../../bpf")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "stopword")
	if out, err := exec.Command("gcc", "-O1", "-Wall", "-Wno-unused-function", "-DSTOP_WORD_H=\""+headers+"/stop_word.h\"", "-DSTOP_H=\""+headers+"/stop.h\"", "-o", program, "testdata/stopword.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &cStop{t, in, out, map[cRequest]cAnswer{}}
}

// do takes one step; up says that the worker gives it up.
func (c *cStop) do(word uint64, want int, op, arg uint32, up bool) (uint64, bool) {
	r := cRequest{Word: word, Want: uint64(want), Op: op, Arg: arg, GivesUp: bpf.Flag(up)}
	a, ok := c.known[r]
	if !ok {
		if err := binary.Write(c.in, binary.NativeEndian, r); err != nil {
			c.t.Fatal(err)
		}
		if err := binary.Read(c.out, binary.NativeEndian, &a); err != nil {
			c.t.Fatal(err)
		}
		c.known[r] = a
	}
	return a.Word, a.Said != 0
}

// A trapWorker's place.
const (
	atPark = iota
	atDecision
	atHold    // committed: its interrupts are off
	atOthers  // waits until all are held
	atVerdict // has said that it waits no longer, reads the word
	atOver    // has read that all are held, reads Stop.Over
	atWindow
	atVain    // did not get into the window
	atEnd     // has finished, waits for the others
	atRelease // has released
	atRestore // has set Stop.Over: its interrupts come on
	atLeft
)

type trapWorker struct {
	place           int8
	main, in, holds bool // counted in; has its interrupts off, and said so
}

type trapModel struct {
	word    uint64
	n       int
	workers [3]trapWorker
	entered bool // somebody has been in the window
	over    bool // stop.over: somebody who was held has gone
}

// trapChecks explores. lax takes the phase alone for held; hasty turns interrupts on
// before it says so; deaf takes a panic for the end of the first pass.
type trapChecks struct {
	c     *cStop
	lax   bool
	hasty bool
	deaf  bool
	seen  map[trapModel]bool
	ends  int
	fault string
}

func (x *trapChecks) verdict(m trapModel) bool {
	if x.lax {
		return stop.PhaseOf(m.word) == stop.PhaseCommitted
	}
	_, held := x.c.do(m.word, m.n, cAllHeld, 0, false)
	return held
}

// step is choice number k of worker i; up: the step that it makes is given up.
func (x *trapChecks) step(m trapModel, i, k int, up bool) (trapModel, bool) {
	w := &m.workers[i]
	do := func(op, arg uint32) (said bool) {
		m.word, said = x.c.do(m.word, m.n, op, arg, up)
		return said
	}
	p := stop.PhaseOf(m.word)
	switch {
	case w.place == atPark && k == 0:
		if w.in = do(cArrive, bpf.Flag(w.main)); w.in {
			w.place = atDecision
		} else {
			w.place = atLeft
		}
	case w.place == atPark && k == 1 && !up: // never comes
		w.place = atLeft
	case w.place == atPark && k == 2: // comes past the deadline
		do(cExpire, 0)
		if !up && do(cArrive, bpf.Flag(w.main)) {
			x.fault = "arrived past the deadline"
		}
		w.place = atLeft
	case w.place == atDecision && k < 2: // sees the decision, or its deadline passes
		if k == 0 && (p == stop.PhaseArriving || up) {
			return m, false
		}
		if k == 1 {
			do(cExpire, 0)
		}
		switch stop.PhaseOf(m.word) {
		case stop.PhaseAborted, stop.PhaseArriving, stop.PhasePanicked:
			w.place = atLeft
		default:
			w.place = atHold
		}
	case w.place == atHold && k == 0:
		before := m.word
		do(cHold, 0)
		w.holds = m.word>>48 != before>>48
		w.place = atOthers
	case w.place == atOthers && k < 2: // sees what it waits for, or its hold budget is spent
		if k == 0 && p == stop.PhaseCommitted && m.word>>48 != stop.ArrivedOf(m.word) {
			return m, false
		}
		do(cHold, 1)
		w.place = atVerdict
	case w.place == atVerdict && k == 0 && !up:
		if w.place = atVain; x.verdict(m) {
			w.place = atOver
		}
	case w.place == atOver && k == 0 && !up:
		if w.place = atVain; !m.over {
			w.place, m.entered = atWindow, true
			x.checkHeld(m)
		}
	case (w.place == atWindow || w.place == atVain) && k == 0:
		w.place = atEnd
		if do(cFinish, 0); p == stop.PhasePanicked && x.deaf {
			m.word = m.word&^0xff | uint64(stop.PhaseDrained)
		}
	case w.place == atEnd && k < 2: // sees that all are done, or its own deadline passes
		if k == 0 && p == stop.PhaseCommitted {
			return m, false
		}
		do(cRelease, 0)
		w.place = atRelease
	case w.place == atRelease && k == 0 && !up:
		w.place, m.over = atRestore, m.over || !x.hasty
		w.holds = w.holds && !x.hasty
	case w.place == atRestore && k == 0 && !up:
		w.place, m.over, w.holds = atLeft, true, false
	default:
		return m, false
	}
	return m, true
}

// panics is the panic program's swap (internal/bpf/panic.bpf.c, end_stop). False: no capture
// holds the machine.
func (m trapModel) panics() (trapModel, bool) {
	switch stop.PhaseOf(m.word) {
	case stop.PhaseArriving, stop.PhaseCommitted, stop.PhaseDrained:
		m.word = m.word&^0xff | uint64(stop.PhasePanicked)
		return m, true
	}
	return m, false
}

// checkHeld: one has just got into the window.
func (x *trapChecks) checkHeld(m trapModel) {
	for i, w := range m.workers[:m.n] {
		if w.in && !w.holds {
			x.fault = fmt.Sprintf("in the window, and CPU %d, counted in, has its interrupts on: %+v", i, m)
		}
	}
}

var trapSuccessors = map[stop.Phase][]stop.Phase{
	stop.PhaseArriving:  {stop.PhaseArriving, stop.PhaseCommitted, stop.PhaseAborted, stop.PhasePanicked},
	stop.PhaseCommitted: {stop.PhaseCommitted, stop.PhaseDrained, stop.PhaseReleased, stop.PhaseAborted, stop.PhasePanicked},
	stop.PhaseDrained:   {stop.PhaseDrained, stop.PhaseReleased, stop.PhasePanicked},
	stop.PhaseReleased:  {stop.PhaseReleased},
	stop.PhaseAborted:   {stop.PhaseAborted},
	stop.PhasePanicked:  {stop.PhasePanicked},
}

func (x *trapChecks) check(m trapModel, before stop.Phase) {
	now, ok := stop.PhaseOf(m.word), false
	for _, p := range trapSuccessors[before] {
		ok = ok || p == now
	}
	in := uint64(0)
	for _, w := range m.workers[:m.n] {
		if w.in {
			in++
		}
	}
	switch {
	case !ok:
		x.fault = fmt.Sprintf("%v → %v: %+v", before, now, m)
	case m.entered && now == stop.PhaseAborted:
		x.fault = fmt.Sprintf("a stop is aborted that somebody recorded in: %+v", m)
	case stop.ArrivedOf(m.word) != in || stop.BusyOf(m.word) > in || m.word>>48 > in:
		x.fault = fmt.Sprintf("%d counted in: %+v", in, m)
	}
}

func (x *trapChecks) explore(m trapModel, before stop.Phase) {
	if x.check(m, before); x.fault != "" || x.seen[m] {
		return
	}
	x.seen[m] = true
	moved := false // by a worker: nobody may wait for a panic
	if next, ok := m.panics(); ok {
		x.explore(next, stop.PhaseOf(m.word))
	}
	for i := range m.n {
		for k := range 3 {
			for _, up := range []bool{false, true} {
				if next, ok := x.step(m, i, k, up); ok {
					moved = true
					x.explore(next, stop.PhaseOf(m.word))
				}
				if x.fault != "" {
					return
				}
			}
		}
	}
	if moved {
		return
	}
	x.ends++
	for i, w := range m.workers[:m.n] {
		if w.place != atLeft {
			x.fault = fmt.Sprintf("worker %d is stuck: %+v", i, m)
		}
	}
}

func trapStart(n int) trapModel {
	m := trapModel{n: n, word: uint64(stop.PhaseArriving)}
	m.workers[0].main = true
	return m
}

func TestInvariant3TrapHoldsAll(t *testing.T) {
	testneed.Live(t)
	c := startCStop(t)
	for n := 1; n <= 3; n++ {
		x := &trapChecks{c: c, seen: map[trapModel]bool{}}
		x.explore(trapStart(n), stop.PhaseArriving)
		if x.fault != "" {
			t.Fatalf("%d workers: %s", n, x.fault)
		}
		if x.ends == 0 || len(x.seen) < 10*n {
			t.Fatalf("%d workers: %d states, %d ends: the model does not move", n, len(x.seen), x.ends)
		}
		t.Logf("%d workers: %d states, %d ends", n, len(x.seen), x.ends)
	}
	for _, x := range []*trapChecks{{lax: true}, {hasty: true}, {deaf: true}} {
		x.c, x.seen = c, map[trapModel]bool{}
		if x.explore(trapStart(2), stop.PhaseArriving); x.fault == "" {
			t.Errorf("lax %v, hasty %v, deaf %v: passes: the test sees nothing", x.lax, x.hasty, x.deaf)
		}
	}
}

// The trap's functions change the word as the workers of engine pull do.
func TestInvariant3TrapAndPullAgree(t *testing.T) {
	testneed.Live(t)
	c := startCStop(t)
	var words []uint64
	for p := stop.PhaseIdle; p <= stop.PhasePanicked; p++ {
		for _, bits := range []uint64{0, stop.BitMain, stop.BitNoSpace, stop.BitEarly, stop.BitMain | stop.BitNoSpace} {
			for arrived := range uint64(4) {
				for busy := range uint64(3) {
					words = append(words, uint64(p)|bits|arrived<<stop.ArrivedShift|min(busy, arrived)<<stop.BusyShift)
				}
			}
		}
	}
	for _, word := range words {
		for want := 1; want <= 4; want++ {
			for op, do := range map[uint32]func(*stop.State) bool{
				cArrive:  func(s *stop.State) bool { return s.Arrive(false) },
				cExpire:  func(s *stop.State) bool { s.Expire(); return false },
				cRelease: func(s *stop.State) bool { s.Release(); return false },
				cFinish:  func(s *stop.State) bool { s.Finish(); return false },
				cNoSpace: func(s *stop.State) bool { s.NoSpace(); return false },
			} {
				if op == cFinish && stop.BusyOf(word) == 0 {
					continue // nobody is left to finish
				}
				s := stop.State{Want: uint64(want)}
				s.Word.Store(word)
				said := do(&s)
				got, gotSaid := c.do(word, want, op, 0, false)
				if got != s.Word.Load() || gotSaid != said {
					t.Errorf("step %d of %#x, want %d: the trap makes %#x and says %v, pull %#x and %v", op, word, want, got, gotSaid, s.Word.Load(), said)
				}
			}
		}
	}
}
