//go:build linux

package userlab

import (
	"fmt"
	"slices"
)

// A Verdict is how the stacks of one process hold against gdb's.
type Verdict struct {
	Process string
	Apart   bool // set by the caller, from [Process.Apart]

	// Stacks that gdb has whole, from unwinding tables down to the outermost
	// frame, and how many of them ours are, with every frame the same. A stack
	// that gdb has in part only counts if ours is wrong in that part.
	Stacks, Valid int
	// Frames that gdb has from unwinding tables, of all threads, and how many
	// of ours at the same place are the same.
	Frames, Agree int
	// Unsure are threads that gdb has in part or not at all, and in whose part
	// ours is right: why, and how many.
	Unsure   map[string]int
	Failures []Failure
}

// A Failure is a thread whose stack is not what gdb has.
type Failure struct {
	Tid   int
	Frame int // physical, innermost is 0; -1 for the whole
	Ours  Frame
	GDB   Frame
	Why   string
}

func (f Failure) String() string {
	if f.Frame < 0 {
		return fmt.Sprintf("thread %d: %s", f.Tid, f.Why)
	}
	return fmt.Sprintf("thread %d frame %d: %s: %v, gdb has %v", f.Tid, f.Frame, f.Why, f.Ours, f.GDB)
}

// Judge compares ours with gdb's, by tid. Inline frames do not count. A stack is
// valid if, frame by frame from the innermost, it has gdb's pcs and functions
// down to the outermost that gdb shows, and if it ends there where gdb's says
// that it is the outermost. So an end at _start proves nothing by itself.
func Judge(process string, gdb []Thread, ours []Stack) Verdict {
	v := Verdict{Process: process, Unsure: map[string]int{}}
	for _, t := range gdb {
		i := slices.IndexFunc(ours, func(s Stack) bool { return s.Tid == t.Tid })
		var s *Stack
		if i >= 0 {
			s = &ours[i]
		}
		v.thread(t, s)
	}
	for _, s := range ours {
		if !slices.ContainsFunc(gdb, func(t Thread) bool { return t.Tid == s.Tid }) {
			v.Unsure["gdb has no such thread"]++
		}
	}
	return v
}

func (v *Verdict) thread(t Thread, s *Stack) {
	known := physical(t.Frames)
	known = known[:min(t.Trusted, len(known))]
	v.Frames += len(known)
	if s == nil {
		v.fail(Failure{Tid: t.Tid, Frame: -1, Why: "no stack"})
		return
	}
	got := physical(s.Frames)
	same, first := agreement(got, known)
	v.Agree += same
	switch {
	case first >= 0:
		f := Failure{Tid: t.Tid, Frame: first, GDB: known[first], Why: difference(got, known, first)}
		if first < len(got) {
			f.Ours = got[first]
		}
		v.fail(f.noted(s.Note))
	case t.Error == "" && t.Outermost && len(got) > len(known):
		f := Failure{Tid: t.Tid, Frame: len(known), Ours: got[len(known)], Why: "goes on past the outermost frame"}
		v.fail(f.noted(s.Note))
	case t.Error != "":
		v.Unsure[t.Error]++
	default:
		v.Stacks++
		v.Valid++
	}
}

func (v *Verdict) fail(f Failure) {
	v.Stacks++
	v.Failures = append(v.Failures, f)
}

func (f Failure) noted(note string) Failure {
	if note != "" {
		f.Why += " (" + note + ")"
	}
	return f
}

// agreement counts the equal frames and gives the first other one, or -1.
func agreement(got, known []Frame) (same, first int) {
	first = -1
	for i, k := range known {
		switch {
		case i < len(got) && got[i].agrees(k):
			same++
		case first < 0:
			first = i
		}
	}
	return same, first
}

// difference names what is wrong at frame i.
func difference(got, known []Frame, i int) string {
	pc := func(f Frame) bool { return f.PC == known[i].PC }
	switch {
	case i >= len(got):
		return fmt.Sprintf("ends after %d of %d frames", len(got), len(known))
	case got[i].PC == known[i].PC && got[i].Func == "":
		return "has no name"
	case got[i].PC == known[i].PC:
		return "has another name"
	case slices.ContainsFunc(got[i:], pc):
		return "has a frame too many"
	case slices.ContainsFunc(known[i:], func(f Frame) bool { return f.PC == got[i].PC }):
		return "lacks a frame"
	}
	return "has another pc"
}
