//go:build linux && (amd64 || arm64)

package hanglab

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"stackshot/internal/userlab"
	"stackshot/internal/waits"
)

// endCases wait at open files: who has the other end is what is to be said.
func endCases() []*Case {
	return slices.Concat(endCycles(), endMixed(), endOwed(), endAtRest(), endSets(), endLocks(), endFUSE(), endOutside())
}

// Kinds of what is waited for at open files. A set of files is waited for as such, or as the
// one that matters.
var (
	atPipe     = []waits.Kind{waits.Pipe}
	atSocket   = []waits.Kind{waits.Socket}
	atTerminal = []waits.Kind{waits.Terminal}
	atSet      = []waits.Kind{waits.Poll, waits.Socket, waits.Pipe, waits.Descriptor}
	atLock     = []waits.Kind{waits.FileLock}
	atFault    = []waits.Kind{waits.Userfault, waits.PageFault}
	// Pages of a file of FUSE are waited for, or the answer.
	atFUSE = []waits.Kind{waits.FUSE, waits.PageLock}
)

// end makes a case of steps; see userlab's ends.c.
func end(name string, steps ...string) *Case {
	return &Case{Name: name, start: func(tb testing.TB, l *Lab) Cast {
		return l.hangs.StartEnds(tb, "ends "+name, steps).Parts
	}}
}

// at says what a role waits for, and for whose ends.
func (c *Case) at(role string, kinds []waits.Kind, owners ...string) *Case {
	c.Files = append(c.Files, FileWait{Role: role, Kinds: kinds, Owners: owners})
	return c
}

// waits says for which lock a role waits, and who holds it.
func (c *Case) waits(role, owner string, kinds ...waits.Kind) *Case {
	c.Waits = append(c.Waits, Wait{role, kinds, owner})
	return c
}

// says is for the role that at was for last.
func (c *Case) says(any ...waits.FileSays) *Case {
	c.Files[len(c.Files)-1].Says = any
	return c
}

func (c *Case) remote(host string) *Case {
	c.Files[len(c.Files)-1].Remote = host
	return c
}

func (c *Case) cycle(roles ...string) *Case {
	c.Cycle = roles
	return c
}

func (c *Case) behind(roles ...string) *Case {
	c.Behind = roles
	return c
}

// probably: no more than likely.
func (c *Case) probably() *Case {
	c.Probably = true
	return c
}

func (c *Case) accuses(k ...Culprit) *Case {
	c.Culprits = append(c.Culprits, k...)
	return c
}

func (c *Case) needs(lacks func() string) *Case {
	c.lacks = lacks
	return c
}

// group are the roles of "w*3".
func group(name string, n int) (roles []string) {
	for i := range n {
		roles = append(roles, fmt.Sprint(name, i))
	}
	return roles
}

// Crowd are n processes of 40 open files each, asleep or waiting as they should, of whom
// nothing is to be said.
func (l *Lab) Crowd(tb testing.TB, n int) *Running {
	tb.Helper()
	h := l.hangs.StartHealthy(tb, "bystanders", []string{fmt.Sprintf("b crowd %d", n), "b nap"})
	r := &Running{Case: &Case{Name: "bystanders"}, Cast: Cast{}, since: time.Now()}
	maker := h.Parts["b"].Pid
	for _, pid := range h.Members {
		role := fmt.Sprint(pid)
		r.Cast[role] = userlab.Part{Pid: pid, Tid: pid, Inner: pid}
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err != nil {
			tb.Fatal(err)
		} else if string(name) == "reader\n" { // of a pipe from the one who made it
			r.at(role, atPipe, fmt.Sprint(maker))
		}
	}
	if len(r.Cast) < n {
		tb.Fatalf("hanglab: %d bystanders, want %d", len(r.Cast), n)
	}
	return r
}
