package waitgraph

import (
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// said is a verdict in short: "deadlock 0 1 (sure) behind 2; culprit 3 stopped: 4".
func said(v *Verdict) string {
	var out []string
	list := func(ws []*waits.Wait) (s string) {
		for _, n := range numbers(ws) {
			s += " " + itoa(n)
		}
		return s
	}
	for _, d := range v.Deadlocks {
		s := string(d.Confidence) + " deadlock" + list(d.Cycle)
		if len(d.Part) > len(d.Cycle) {
			s += " of" + list(d.Part)
		}
		if len(d.Behind) > 0 {
			s += " behind" + list(d.Behind)
		}
		out = append(out, s)
	}
	for _, c := range v.Culprits {
		s := "culprit outside"
		if c.Owner.Thread != nil {
			s = "culprit " + itoa(number(c.Owner.Thread))
		}
		s += " " + string(c.Reason)
		if len(c.Victims) > 0 {
			s += ":" + list(c.Victims)
		}
		out = append(out, s)
	}
	for _, c := range v.Convoys {
		out = append(out, "convoy"+list(c.Waiters))
	}
	if len(v.Starved) > 0 {
		out = append(out, "starved"+list(v.Starved))
	}
	return strings.Join(out, "; ")
}

func itoa(n int) string { return string(rune('0' + n)) } // n < 10

// TestStories holds the verdict on small machines, each made by hand.
func TestStories(t *testing.T) {
	for name, c := range map[string]struct {
		make func(w *world)
		want string
	}{
		"a system call under strace": {func(w *world) {
			w.waits(0, waits.UserJoin, old, w.by(waits.Joined, 1))
			w.in(1, kcdata.StateTraced)
			w.waits(1, waits.Traced, time.Millisecond)
			w.waits(2, waits.UserJoin, old, w.by(waits.Joined, 3))
			w.in(3, kcdata.StateTraced)
			w.waits(3, waits.Traced, old)
		}, "culprit 3 traced: 2"},
		"a worker that waits for a lock for a moment": {func(w *world) {
			w.waits(0, waits.UserJoin, old, w.by(waits.Joined, 1))
			w.waits(1, waits.UserMutex, time.Millisecond, w.holds(2))
			w.running(2)
			w.waits(3, waits.ChildEnd, old, w.by(waits.Child, 4))
			w.waits(4, waits.UserMutex, old, w.holds(5))
			w.running(5)
		}, "culprit 5 running: 3 4"},
		"ABBA": {func(w *world) {
			w.waits(0, waits.UserMutex, 0, w.holds(1))
			w.waits(1, waits.UserMutex, -1, w.holds(0))
			w.waits(2, waits.UserMutex, old, w.holds(1))
			w.waits(3, waits.ChildEnd, old, w.by(waits.Child, 2))
		}, "sure deadlock 0 1 behind 2 3"},
		"ABBA with a timeout": {func(w *world) {
			w.waits(0, waits.UserMutex, old, w.holds(1))
			w.waits(1, waits.UserMutex, old, w.holds(0)).Timed = true
		}, "likely deadlock 0 1"},
		"ABBA, not of one instant": {func(w *world) {
			w.w.OneInstant = false
			w.waits(0, waits.UserMutex, old, w.holds(1))
			w.waits(1, waits.UserMutex, old, w.holds(0))
		}, "likely deadlock 0 1"},
		"waits for itself": {func(w *world) { w.waits(0, waits.UserMutex, old, w.holds(0)) }, "sure deadlock 0"},
		"a sure cycle beside a shorter likely one": {func(w *world) {
			w.waits(0, waits.UserMutex, old, w.holds(1))
			w.waits(1, waits.UserMutex, old, w.holds(2), w.by(waits.Last, 0))
			w.waits(2, waits.UserMutex, old, w.holds(0))
		}, "sure deadlock 0 1 2"},
		"two behind each other": {func(w *world) {
			w.waits(0, waits.UserMutex, old, w.holds(1))
			w.waits(1, waits.UserMutex, old, w.holds(0), w.holds(2))
			w.waits(2, waits.UserMutex, old, w.holds(3))
			w.waits(3, waits.UserMutex, old, w.holds(2))
			w.waits(4, waits.UserMutex, old, w.holds(3))
		}, "sure deadlock 2 3 behind 4; sure deadlock 0 1"},
		"a cycle with a way out": {func(w *world) {
			w.waits(0, waits.Pipe, old, w.holds(1), w.by(waits.Child, 2)).AnyOwner = true
			w.waits(1, waits.UserMutex, old, w.holds(0))
			w.running(2)
		}, "culprit 2 running: 1"},
		"the way out is blocked": {func(w *world) {
			w.waits(0, waits.Pipe, old, w.holds(1), w.holds(2)).AnyOwner = true
			w.waits(1, waits.UserMutex, old, w.holds(0))
			w.waits(2, waits.UserMutex, old, w.holds(1))
		}, "sure deadlock 0 1 of 0 1 2"},
		"strace of a stopped program": {func(w *world) {
			w.waits(0, waits.ChildEnd, old, w.by(waits.Child, 1))
			w.in(1, kcdata.StateTraced)
			w.waits(1, waits.Traced, old, w.by(waits.Tracer, 0))
		}, ""},
		"a tracer that has a lock": {func(w *world) {
			w.waits(0, waits.ChildEnd, old, w.by(waits.Child, 1))
			w.in(1, kcdata.StateTraced)
			w.waits(1, waits.Traced, old, w.by(waits.Tracer, 0))
			w.waits(2, waits.UserMutex, old, w.holds(0))
		}, "culprit 1 traced: 2"},
		"a tracer that needs what its tracee has": {func(w *world) {
			w.waits(0, waits.UserMutex, old, w.holds(1))
			w.waits(1, waits.Traced, old, w.by(waits.Tracer, 0))
		}, "sure deadlock 0 1"},

		"a chain that ends in D": {func(w *world) {
			w.d(0, waits.BlockIO, old)
			w.waits(1, waits.Mutex, old, w.holds(0))
			w.waits(2, waits.UserMutex, 2*old, w.holds(1))
		}, "culprit 0 blocked: 2 1"},
		"a young wait between": {func(w *world) {
			w.running(0)
			w.waits(1, waits.Mutex, 0, w.holds(0))
			w.waits(2, waits.UserMutex, old, w.holds(1))
		}, "starved 2"},
		"a young wait for who is in D": {func(w *world) {
			w.d(0, waits.BlockIO, old)
			w.waits(1, waits.Mutex, 0, w.holds(0))
			w.waits(2, waits.UserMutex, old, w.holds(1))
		}, "culprit 0 blocked: 2"},
		"young, and of unknown age": {func(w *world) {
			w.running(0)
			w.waits(1, waits.Mutex, time.Second-1, w.holds(0))
			w.waits(2, waits.Mutex, -1, w.holds(0))
		}, ""},
		"nothing was stopped": {func(w *world) {
			w.w.OneInstant = false
			w.d(0, waits.BlockIO, old).When = waits.NotAtOne
			for n := 1; n < 6; n++ {
				w.waits(n, waits.Mutex, old, w.holds(0)).When = waits.NotAtOne
			}
		}, ""},
		"a holder at rest": {func(w *world) {
			w.waits(0, waits.Poll, old)
			w.waits(1, waits.UserMutex, old, w.holds(0))
		}, "culprit 0 asleep: 1"},
		"dead, outside": {func(w *world) {
			w.waits(0, waits.UserMutex, old, waits.Owner{Tid: 9, Pid: 9, Relation: waits.Holds, Dead: true})
			w.waits(1, waits.UserMutex, 2*old, waits.Owner{Tid: 9, Pid: 9, Relation: waits.Holds})
		}, "culprit outside outside: 1; culprit outside dead: 0"},
		"a frozen holder": {func(w *world) {
			w.waits(0, waits.Frozen, old)
			w.waits(1, waits.UserMutex, old, w.holds(0))
		}, "culprit 0 frozen: 1"},
		"a holder on a CPU that did not come": {func(w *world) {
			w.running(0)
			w.w.CPUs = []kcdata.LinuxCPU{{CPU: 0, Flags: kcdata.CPUMissed}}
			w.waits(1, waits.UserMutex, old, w.holds(0))
		}, "culprit 0 missed_cpu: 1"},
		"a holder without a CPU": {func(w *world) {
			w.in(0, 0)
			w.waits(0, waits.CPU, old)
			w.waits(1, waits.UserMutex, old, w.holds(0))
		}, "culprit 0 runnable: 1; starved 0"},

		"make": {func(w *world) {
			w.waits(0, waits.ChildEnd, old, w.by(waits.Child, 1), w.by(waits.Child, 2))
			w.d(1, waits.Vfork, old, w.by(waits.Execs, 3))
			w.waits(2, waits.UserJoin, old, w.by(waits.Joined, 4))
			w.waits(3, waits.Socket, old)
			w.running(4)
		}, ""},
		"a child of several is stopped": {func(w *world) {
			w.waits(0, waits.ChildEnd, old, w.by(waits.Child, 1), w.by(waits.Child, 2)).AnyOwner = true
			w.in(1, kcdata.StateStopped)
			w.running(2)
		}, ""},
		"all children are stopped": {func(w *world) {
			w.waits(0, waits.ChildEnd, old, w.by(waits.Child, 1), w.by(waits.Child, 2)).AnyOwner = true
			w.in(1, kcdata.StateStopped)
			w.in(2, kcdata.StateStopped)
		}, "culprit 1 stopped: 0; culprit 2 stopped"},
		"a child in D for long, one for a moment": {func(w *world) {
			w.waits(0, waits.ChildEnd, old, w.by(waits.Child, 1))
			w.d(1, waits.NFS, old)
			w.waits(2, waits.ChildEnd, old, w.by(waits.Child, 3))
			w.d(3, waits.NFS, 0)
		}, "culprit 1 blocked: 0"},
		"who holds a lock waits for its child": {func(w *world) {
			w.running(0)
			w.waits(1, waits.ChildEnd, old, w.by(waits.Child, 0))
			w.waits(2, waits.UserMutex, old, w.holds(1))
		}, "culprit 0 running: 2"},
		"a child behind a deadlock": {func(w *world) {
			w.waits(0, waits.UserMutex, old, w.holds(0))
			w.waits(1, waits.ChildEnd, old, w.by(waits.Child, 0))
		}, "sure deadlock 0 behind 1"},

		"a semaphore's last holder runs": {func(w *world) {
			w.running(0)
			w.d(1, waits.Semaphore, old, w.by(waits.Last, 0))
			w.waits(2, waits.Mutex, old, w.holds(1))
		}, "culprit 1 blocked: 2"},
		"a semaphore's last holder is in D": {func(w *world) {
			w.d(0, waits.BlockIO, old)
			w.d(1, waits.Semaphore, old, w.by(waits.Last, 0))
		}, "culprit 0 blocked: 1"},
		"a semaphore is one of two ways on": {func(w *world) {
			w.d(0, waits.Semaphore, old, w.by(waits.Last, 1), w.holds(2)).AnyOwner = true
			w.running(1)
			w.d(2, waits.BlockIO, 2*old)
			w.waits(3, waits.Mutex, old, w.holds(0))
			w.waits(4, waits.Mutex, old, w.holds(2))
		}, "culprit 2 blocked: 4; culprit 0 blocked: 3"},
		"a semaphore that waits longer": {func(w *world) {
			w.d(0, waits.Semaphore, 2*old, w.by(waits.Last, 1), w.holds(2)).AnyOwner = true
			w.running(1)
			w.d(2, waits.BlockIO, old)
			w.waits(3, waits.Mutex, old, w.holds(0))
			w.waits(4, waits.Mutex, old, w.holds(2))
		}, "culprit 0 blocked: 3; culprit 2 blocked: 4"},
		"two semaphores": {func(w *world) {
			w.d(0, waits.Semaphore, old, w.by(waits.Last, 1))
			w.d(1, waits.Semaphore, old, w.by(waits.Last, 0))
		}, "likely deadlock 0 1"},

		"a hog": {func(w *world) {
			th := w.running(0)
			th.Linux.Policy, th.Linux.Prio = schedFIFO, 0
			w.in(1, 0)
			w.waits(1, waits.CPU, old, w.by(waits.Runs, 0))
			w.waits(2, waits.UserMutex, old, w.holds(1))
		}, "culprit 0 running: 1 2"},
		"a hog that the waiter outranks, an ordinary one, a young wait": {func(w *world) {
			th := w.running(0)
			th.Linux.Policy, th.Linux.Prio = schedRR, 50
			w.in(1, 0).Linux.Prio = 49
			w.waits(1, waits.CPU, old, w.by(waits.Runs, 0))
			w.running(2)
			w.in(3, 0)
			w.waits(3, waits.CPU, 2*old, w.by(waits.Runs, 2))
			w.in(4, 0)
			w.waits(4, waits.CPU, 0, w.by(waits.Runs, 0))
		}, "starved 3 1"},
		"in D, nobody waits": {func(w *world) {
			w.d(0, waits.BlockIO, old)
			w.d(1, waits.AtRest, old)
			w.d(2, waits.BlockIO, 0)
			w.d(3, waits.Timer, old)
			w.d(4, waits.Vfork, old)
			w.d(5, waits.BlockIO, 2*old)
			w.d(6, waits.Mutex, old)
		}, "culprit 5 blocked; culprit 0 blocked; culprit 6 blocked"},
		"our own threads": {func(w *world) {
			w.running(0).Linux.Present |= kcdata.ThreadIsSelf
			w.waits(1, waits.Mutex, old, w.holds(0))
			w.thread(2).Linux.Present |= kcdata.ThreadIsSelf
			w.d(2, waits.Mutex, old, w.holds(3))
			w.running(3)
			w.waits(4, waits.UserMutex, -1, w.holds(2))
		}, "starved 1"},
		"a busy lock": {func(w *world) { // its holder, asleep for a moment, had it for a moment
			w.waits(0, waits.Timer, young)
			w.d(1, waits.BlockIO, young)
			w.waits(2, waits.UserMutex, old, w.holds(0))
			w.waits(3, waits.UserMutex, old, w.holds(1))
			w.waits(4, waits.UserMutex, young, w.holds(0))
		}, "starved 2 3"},
		"a lock that passes from one to the next": {func(w *world) { // just now nobody has it
			for n := range 4 {
				w.d(n, waits.RWSemWrite, old).Resource = waits.Resource{Kind: waits.RWSem, ID: 1}
			}
			w.d(4, waits.RWSemWrite, old).Resource = waits.Resource{Kind: waits.RWSem, ID: 2}
		}, "culprit 4 blocked; convoy 0 1 2 3"},
		"the position of a file that many read by": {func(w *world) {
			w.d(0, waits.FUSE, old)
			for n := 1; n < 5; n++ {
				w.d(n, waits.FilePosition, old, w.holds(0)).Resource = waits.Resource{Kind: waits.FilePosition, ID: 1}
			}
		}, "culprit 0 blocked: 1 2 3 4; convoy 1 2 3 4"},
		"the order": {func(w *world) {
			w.running(0)
			w.waits(1, waits.Mutex, old, w.holds(0))
			w.in(2, kcdata.StateStopped)
			w.waits(3, waits.Mutex, old, w.holds(2))
			w.d(4, waits.BlockIO, 9*old)
			w.d(5, waits.BlockIO, old)
			w.waits(6, waits.Mutex, old, w.holds(5))
			w.waits(7, waits.Mutex, old, w.holds(7))
		}, "sure deadlock 7; culprit 5 blocked: 6; culprit 4 blocked; culprit 2 stopped: 3; culprit 0 running: 1"},
	} {
		w := newWorld()
		c.make(w)
		v := Judge(w.w, Options{})
		if len(w.threads) <= 5 {
			if err := checkCulprits(w, v); err != nil {
				t.Errorf("%s: by brute force: %v", name, err)
			}
		}
		if got := said(v); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if hang := c.want != "" && !strings.HasPrefix(c.want, "starved"); v.Hangs() != hang {
			t.Errorf("%s: hangs: %v", name, v.Hangs())
		}
	}
}

// Convoys: how many, which locks, and not those of a deadlock.
func TestConvoys(t *testing.T) {
	w := newWorld()
	a, b, d := waits.Resource{Kind: waits.RWSem, ID: 1}, waits.Resource{Kind: waits.Mutex, ID: 2}, waits.Resource{Kind: waits.UserMutex, Task: 1, ID: 3}
	w.running(0)
	for n := 1; n < 6; n++ {
		w.waits(n, waits.RWSemRead, time.Duration(n)*time.Second, w.holds(0)).Resource = a
	}
	w.waits(6, waits.RWSemWrite, 0, w.holds(0)).Resource = a
	for n := 10; n < 14; n++ {
		x := w.d(n, waits.Mutex, old)
		x.Resource = b
		if n == 13 {
			x.Age.Ns = 999_999_999
		}
	}
	for n := 20; n < 26; n++ {
		w.waits(n, waits.UserMutex, old, w.holds(20)).Resource = d
	}
	for n := 30; n < 36; n++ {
		w.waits(n, waits.Poll, old).Resource = b
		w.waits(n+10, waits.UserMutex, old)
	}
	v := Judge(w.w, Options{})
	if len(v.Convoys) != 1 || !slices.Equal(numbers(v.Convoys[0].Waiters), []int{5, 4, 3, 2, 1}) || v.Convoys[0].Resource != a {
		t.Fatalf("%+v", v.Convoys)
	}
	if o := v.Convoys[0].Owners; len(o) != 1 || o[0].Thread != w.threads[0] {
		t.Errorf("owners %+v", o)
	}
	if v := Judge(w.w, Options{MinWait: 1}); len(v.Convoys) != 2 || v.Convoys[1].Resource != b {
		t.Errorf("with a MinWait of 1 ns: %+v", v.Convoys)
	}
}

// The tree shows who stands between, and who waits for whom in it.
func TestTree(t *testing.T) {
	w := newWorld()
	w.d(0, waits.BlockIO, old)
	w.waits(1, waits.Mutex, 0, w.holds(0)) // between
	w.waits(2, waits.Mutex, old, w.holds(1))
	w.waits(3, waits.Mutex, 2*old, w.holds(0))
	w.waits(4, waits.Mutex, 3*old, w.holds(2))
	w.waits(5, waits.Mutex, 0, w.holds(2)) // young, and nobody waits for it
	v := Judge(w.w, Options{})
	type line struct {
		thread, owner, depth int
		victim               bool
	}
	var got []line
	for _, b := range v.Culprits[0].Tree {
		got = append(got, line{number(b.Wait.Thread), number(b.Owner.Thread), b.Depth, b.Victim})
	}
	if want := []line{{3, 0, 0, true}, {1, 0, 0, false}, {2, 1, 1, true}, {4, 2, 2, true}}; !slices.Equal(got, want) {
		t.Errorf("tree %v, want %v", got, want)
	}
	var up []int
	for _, b := range chainOf(v.Culprits[0].Tree, w.w.Of[w.threads[4]]) {
		up = append(up, number(b.Owner.Thread))
	}
	if !slices.Equal(up, []int{2, 1, 0}) || chainOf(v.Culprits[0].Tree, w.w.Of[w.threads[5]]) != nil {
		t.Errorf("chain %v", up)
	}
	if c := v.Culprits[0]; !slices.Equal(numbers(c.Victims), []int{4, 3, 2}) || v.Unaged != 0 || c.Owner.Relation != waits.Holds {
		t.Errorf("%+v", c)
	}
}

// Who keeps only a thread that is listed with another culprit says whom it keeps.
func TestShared(t *testing.T) {
	w := newWorld()
	w.d(0, waits.BlockIO, 2*old)
	w.running(1)
	w.running(2)
	w.waits(3, waits.ChildEnd, 0, w.by(waits.Child, 1))
	w.waits(4, waits.UserRWLock, old, w.holds(0), w.holds(2), w.holds(3))
	v := Judge(w.w, Options{})
	if err := checkCulprits(w, v); err != nil {
		t.Error(err)
	}
	if got := said(v); got != "culprit 0 blocked: 4; culprit 1 running; culprit 2 running" {
		t.Fatal(got)
	}
	if c := v.Culprits[1]; len(c.Shared) != 0 || len(c.Tree) != 1 || number(c.Tree[0].Wait.Thread) != 3 || c.Tree[0].Victim {
		t.Errorf("%+v", c)
	}
	if c := v.Culprits[2]; !slices.Equal(numbers(c.Shared), []int{4}) || len(c.Tree) != 0 {
		t.Errorf("%+v", c)
	}
}

// In a file without records of waits nobody is accused: not who is in D, nor who is stopped.
func TestUnrecorded(t *testing.T) {
	w := newWorld()
	w.d(0, waits.Other, old)
	w.in(2, kcdata.StateStopped)
	w.waits(2, waits.Stopped, old)
	w.waits(4, waits.ChildEnd, old, w.by(waits.Child, 2))
	w.waits(6, waits.CPU, old)
	if got := said(Judge(w.w, Options{})); got != "culprit 0 blocked; culprit 2 stopped: 4; starved 6" {
		t.Fatalf("recorded: %s", got)
	}
	w.w.Unrecorded = true
	if got := said(Judge(w.w, Options{})); got != "starved 6" {
		t.Errorf("not recorded: %s", got)
	}
}
