package screen

import (
	"fmt"
	"strings"
	"testing"

	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Who is in line is said with behind whom, and nobody is called stuck.
func TestInLine(t *testing.T) {
	c := newScene(2)
	cron, th := c.process(12, "cron", kcdata.StateInterruptible, 30)
	holder := has(cron, th, waits.Holds)
	for i := range uint32(3) {
		job, th := c.process(20+i, "job", kcdata.StateInterruptible, 20)
		c.v.Starved = append(c.v.Starved, c.waits(job, th, waits.FileLock, 20, holder))
	}
	busy, th := c.process(40, "busy", 0, 1)
	c.v.Starved = append(c.v.Starved, c.waits(busy, th, waits.CPU, 9))
	want := func(width int, says string) {
		t.Helper()
		text := textOf(t, c.done(), Options{Verdict: c.v, Width: width, Height: 30})
		if flat := strings.Join(strings.Fields(text), " "); !strings.Contains(flat, says) || strings.Contains(flat, "STUCK") {
			t.Errorf("%q is not said in\n%s", says, text)
		}
	}
	want(80, " 3 in line for up to 20.0 s: 3 behind cron [12] (a file lock) at rest: 2 asleep, 2 of 2 CPUs idle picture")
	web, th := c.process(50, "web", kcdata.StateInterruptible, 30)
	leader := has(web, th, waits.Holds)
	pool := c.waits(web, c.in(web, kcdata.StateInterruptible, 9), waits.UserMutex, 9, leader)
	pool.Resource.ID = 9
	c.v.Pools = []*waitgraph.Convoy{{Resource: pool.Resource, Waiters: []*waits.Wait{pool}, Owners: []waits.Owner{leader}}}
	want(80, " 4 in line for up to 20.0 s: 3 behind cron [12] (a file lock), 1 behind web [50] (a mutex) at rest: ")
	c.v.Pools[0].Owners = nil
	want(80, " 4 in line for up to 20.0 s: 3 behind cron [12] (a file lock), 1 of web [50] at a mutex at rest: ")
	inD, th := c.process(60, "inode", kcdata.StateUninterruptible, 8)
	c.v.Starved = append(c.v.Starved, c.waits(inD, th, waits.Mutex, 8, holder)) // it is listed, and not counted here
	if text := textOf(t, c.done(), Options{Verdict: c.v, Width: 80, Height: 30}); !strings.Contains(text, "\n  8.0 s  inode [60] D: ") || !strings.Contains(text, "\n4 in line for up to 20.0 s: 3 behind cron [12] (a file lock), 1 of web [50] at a\n") {
		t.Errorf("who is in D is not told, or twice:\n%s", text)
	}
}

// A thread in D of which the verdict says nothing is listed. It makes the machine ill only if the file
// says too little for a verdict, and rests only where kernel threads wait for work.
func TestLeftInD(t *testing.T) {
	for name, x := range map[string]struct {
		kind   waits.Kind
		age    uint64
		change func(c *scene, w *waits.Wait)
		brief  string
	}{
		"its lock's holder goes on": {waits.Mutex, 20, nil, "nothing is known to be stuck for long; worth a look: STUCK"},
		"a vfork child":             {waits.Vfork, 20, nil, "nothing is known to be stuck for long; worth a look: STUCK"},
		"work":                      {waits.AtRest, 20, nil, "nothing is stuck"},
		"young":                     {waits.Mutex, 0, nil, "nothing is stuck"},
		"nothing was stopped":       {waits.Mutex, 20, func(_ *scene, w *waits.Wait) { w.When = waits.NotAtOne }, "STUCK: 20.0 s x [60] D: a kernel mutex"},
		"it is not known what for":  {waits.Mutex, 20, func(c *scene, w *waits.Wait) { delete(c.v.Waits.Of, w.Thread) }, "STUCK: 20.0 s x [60] D"},
		"no records of waits":       {waits.Mutex, 20, func(c *scene, w *waits.Wait) { c.s.WaitTaken, c.v.Waits.Unrecorded = nil, true }, "STUCK: 20.0 s x [60] D: a kernel mutex"},
		"its age is not known": {waits.Mutex, 20, func(c *scene, w *waits.Wait) { w.Thread.Linux.LastArrival = 0 },
			"nothing is known to be stuck for long; worth a look: STUCK"},
		"one of two is not judged": {waits.Mutex, 20, func(c *scene, w *waits.Wait) {
			task, th := c.process(61, "x", kcdata.StateUninterruptible, 19)
			c.waits(task, th, waits.Mutex, 19).When = waits.NotAtOne
		}, "STUCK: 20.0 s 2 x x [60] [61] D: a kernel mutex"},
	} {
		c := newScene(2)
		task, th := c.process(60, "x", kcdata.StateUninterruptible, x.age)
		w := c.waits(task, th, x.kind, x.age)
		if x.change != nil {
			x.change(c, w)
		}
		if got := Brief(c.done(), c.v); got != x.brief {
			t.Errorf("%s: %q, want %q", name, got, x.brief)
		}
	}
}

// Minor entries get the rows that are left when each other one of all sections has one.
func TestMinorEntriesComeLast(t *testing.T) {
	sections := []section{{title: "STUCK", entries: []entry{{line: "heavy"}}}, {title: "STOPPED"}}
	for i := range 20 {
		sections[0].entries = append(sections[0].entries, entry{line: fmt.Sprint("minor", i), minor: true})
		if i < 4 {
			sections[1].entries = append(sections[1].entries, entry{line: fmt.Sprint("stopped", i)})
		}
	}
	p := page{width: 80, rows: 10, limited: true}
	p.body("", sections)
	var text []string
	for _, l := range p.middle {
		text = append(text, l.text)
	}
	if got, want := strings.Join(text, ";"), "STUCK;heavy;minor0;minor1;STOPPED;stopped0;stopped1;stopped2;stopped3;and 18 more: STUCK 18"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
