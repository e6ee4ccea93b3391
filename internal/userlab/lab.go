//go:build linux

package userlab

import (
	"fmt"
	"testing"

	"stackshot/internal/testneed"
)

// A Lab is a set of running programs.
type Lab struct{ Processes []*Process }

// An Actor is one program of the lab.
type Actor struct {
	Name string
	// Needs are the programs that build and run it.
	Needs []string
	// Apart: see [Process.Apart].
	Apart bool
	// Want: see [Process.Want].
	Want [][]string

	make func(b *builder) launch
	then func(p *Process) error // after it is ready
}

// Few are what a test of the whole lab has in short: actors that are built and started
// fast, and of whose stacks everything is known. nil is all of them.
func Few() []string {
	return testneed.Length([]string{"c", "c-fp", "c-stripped", "c-vdso", "c++", "musl-static", "python"}, nil)
}

// Start builds and starts every actor, or those named. They end with the test.
// Those with spinning threads are stopped, because there are more spinners than CPUs.
// Where the machine lacks a program that one of them needs, see package testneed.
// Needs root.
func Start(tb testing.TB, names ...string) *Lab {
	tb.Helper()
	if Guest() {
		tb.Skip("userlab: needs compilers, interpreters and gdb: a guest has none")
	}
	actors, err := choose(names)
	if err != nil {
		tb.Fatal(err)
	}
	for _, a := range actors {
		testneed.Program(tb, a.Needs...)
	}
	var l Lab
	b := newBuilder(tb)
	for _, a := range actors {
		l.Processes = append(l.Processes, a.start(b))
	}
	return &l
}

func choose(names []string) ([]Actor, error) {
	if len(names) == 0 {
		return Actors(), nil
	}
	var chosen []Actor
	for _, a := range Actors() {
		for _, n := range names {
			if a.Name == n {
				chosen = append(chosen, a)
			}
		}
	}
	if len(chosen) != len(names) {
		return nil, fmt.Errorf("userlab: some of %q are no actors", names)
	}
	return chosen, nil
}

func (a Actor) start(b *builder) *Process {
	b.tb.Helper()
	l := a.make(b)
	l.name = a.Name
	if l.chroot == "" {
		l.dir = b.file("") // node writes its logs there
	}
	b.done("")
	p := run(b.tb, l)
	p.Apart, p.Want = a.Apart, a.Want
	if a.then != nil {
		if err := a.then(p); err != nil {
			b.tb.Fatalf("userlab: %s: %v\n%s", a.Name, err, p.Log())
		}
	}
	if l.spin > 0 {
		p.Stop()
	}
	return p
}

// Of gives the process of an actor. It fails the test when there is none.
func (l *Lab) Of(tb testing.TB, name string) *Process {
	tb.Helper()
	for _, p := range l.Processes {
		if p.Name == name {
			return p
		}
	}
	tb.Fatalf("userlab: %s does not run", name)
	return nil
}
