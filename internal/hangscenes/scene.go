//go:build linux && (amd64 || arm64)

package hangscenes

import (
	"fmt"
	"testing"
	"time"

	"stackshot/internal/userlab"
)

// Life is after what time whatever takes CPU time in a scene ends by itself.
const Life = 15 * time.Second

// A Scene is one state of a machine, and how it is made.
type Scene struct {
	Name string
	// Healthy: nothing is wrong, and nobody may be named.
	Healthy bool
	// Age is how old it has to be before it is looked at; 0: a quarter of a second.
	Age time.Duration
	// Again: what one moment shows is a matter of luck, as the kernel's fair server lets others
	// run, too, and a storm has its lulls; so it is made up to five times.
	Again bool
	start func(tb testing.TB, hangs *userlab.Hangs) Standing
	lacks func() string // why it cannot be made here, or ""; nil: it can everywhere
}

// Standing is a scene that was made, and what a screen must say of it.
type Standing struct {
	*Scene
	Pids  []int    // each must be named, as a pid or as a tid
	Crowd string   // a process of this name must be named
	Once  bool     // each of Pids in one line alone
	Says  []string // each is a pattern of which the screen has a match
	Not   []string // each is a pattern of which it has none
}

// Lacks says why a scene cannot be made on this machine; "": it can.
func (s *Scene) Lacks() string {
	if s.lacks == nil {
		return ""
	}
	return s.lacks()
}

// Start makes a scene, and returns when it is old enough. It ends with the test.
func (s *Scene) Start(tb testing.TB, hangs *userlab.Hangs) Standing {
	tb.Helper()
	if why := s.Lacks(); why != "" {
		tb.Skipf("hangscenes: %s: %s", s.Name, why)
	}
	r := s.start(tb, hangs)
	r.Scene = s
	if s.Age == 0 {
		time.Sleep(250 * time.Millisecond)
	}
	time.Sleep(s.Age)
	if !s.Healthy && len(r.Pids) == 0 && r.Crowd == "" {
		tb.Fatal(fmt.Errorf("hangscenes: %s has no culprit", s.Name))
	}
	return r
}

// All are the scenes: those that are wrong, then those that are not.
func All() []*Scene {
	return append(hanging(), healthy()...)
}
