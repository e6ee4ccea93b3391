//go:build linux && (amd64 || arm64)

package hanglab

import (
	"fmt"
	"testing"
	"time"

	"stackshot/internal/userlab"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// A Case is one way to hang, and what is to be said of it. Threads are named by role.
type Case struct {
	Name  string
	Cycle []string // a deadlock: each waits for something that the next has, the last for the first's
	// Behind are those who wait for one of Cycle and are not in it.
	Behind   []string
	Culprits []Culprit
	Waits    []Wait
	Files    []FileWait
	// Probably: the cycle is likely at most, whatever the file is of.
	Probably bool
	// MayCycle: it is as right to find Cycle as not.
	MayCycle bool
	// May are roles of whom it is as right to say that they are culprits as not to.
	May []string
	// Gone: the owner is no thread any more, so one that is none may be named.
	Gone bool
	// Alone: it keeps a CPU from everybody, so it does not run beside others, and others
	// may be among its victims. The kernel's fair server lets an ordinary thread run for
	// 50 ms in every second, after which it has not waited for long: Try tries again, at
	// another time after the start.
	Alone bool
	// Read: whoever reads the files of its processes in /proc waits, too, and others do so:
	// captures of other tests. They may be among its victims.
	Read bool

	start func(tb testing.TB, l *Lab) Cast
	lacks func() string // why it cannot be made here, or ""; nil: it can everywhere
}

// A Culprit is where chains end.
type Culprit struct {
	Role    string
	Reasons []waitgraph.Reason // any of them
	Victims []string           // exactly these
}

// A Wait is what one role waits for.
type Wait struct {
	Role  string
	Kinds []waits.Kind // any of them
	Owner string       // role; "": none may be named
}

// A FileWait is what one role waits for at an open file. Owners are processes, by the role of
// their first thread.
type FileWait struct {
	Role   string
	Kinds  []waits.Kind     // any of them; none: any at all
	Owners []string         // all of them, in any order
	Says   []waits.FileSays // any of them; none: any at all
	Remote string           // "" : none may be named
	Mount  string           // the name of its mount point in the directory of the case; "": not asked
}

// Cast says which thread plays which role.
type Cast map[string]userlab.Part

// Lab starts cases. It builds each program once, for the length of its test.
type Lab struct{ hangs *userlab.Hangs }

// New prepares a laboratory. Needs root.
func New(tb testing.TB) *Lab {
	tb.Helper()
	return &Lab{userlab.NewHangs(tb)}
}

// Running is a case that hangs.
type Running struct {
	*Case
	Cast  Cast
	since time.Time
}

// Lacks says why a case cannot be made on this machine; "": it can.
func (c *Case) Lacks() string {
	if c.lacks == nil {
		return ""
	}
	return c.lacks()
}

// Start brings a case to its state, of which /proc has to agree. It ends with the test.
func (l *Lab) Start(tb testing.TB, c *Case) *Running {
	tb.Helper()
	if why := c.Lacks(); why != "" {
		tb.Skipf("hanglab: %s: %s", c.Name, why)
	}
	r := &Running{Case: c, Cast: c.start(tb, l), since: time.Now()}
	if err := c.complete(r.Cast); err != nil {
		tb.Fatal(err)
	}
	return r
}

// Age waits until all of r has waited for d.
func (r *Running) Age(d time.Duration) { time.Sleep(time.Until(r.since.Add(d))) }

// Try starts a case, has a verdict made when all of it is a little older than minWait, and
// gives what is wrong with that, and what else judge finds wrong. A case that is Alone has five
// tries.
func (l *Lab) Try(tb testing.TB, c *Case, minWait time.Duration, judge func(*Running) (*Verdict, []error)) (errs []error) {
	tb.Helper()
	for try := 1; try == 1 || c.Alone && try <= 5 && len(errs) > 0; try++ {
		if errs != nil {
			tb.Logf("once more: %v", errs)
		}
		one := &scope{TB: tb}
		tb.Cleanup(one.end) // also if the test ends before
		r := l.Start(one, c)
		r.Age(minWait + 50*time.Millisecond + time.Duration(try-1)*150*time.Millisecond)
		v, more := judge(r)
		errs = append(Check(v, r), more...)
		one.end()
	}
	return errs
}

// scope is a part of a test, with cleanups of its own: one try's hog would keep the CPU
// from the next one's.
type scope struct {
	testing.TB
	cleanups []func()
}

func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) end() {
	for n := len(s.cleanups); n > 0; n = len(s.cleanups) {
		f := s.cleanups[n-1]
		s.cleanups = s.cleanups[:n-1]
		f()
	}
}

// complete holds a case's own words against the cast.
func (c *Case) complete(cast Cast) error {
	roles := append(append([]string{}, c.Cycle...), c.Behind...)
	for _, w := range c.Waits {
		roles = append(roles, w.Role)
		if w.Owner != "" {
			roles = append(roles, w.Owner)
		}
	}
	for _, f := range c.Files {
		roles = append(append(roles, f.Role), f.Owners...)
	}
	for _, k := range c.Culprits {
		roles = append(append(roles, k.Role), k.Victims...)
	}
	for _, r := range roles {
		if cast[r].Tid == 0 {
			return fmt.Errorf("hanglab: %s: nobody plays %q: %v", c.Name, r, cast)
		}
	}
	return nil
}
