package waitgraph

import (
	"testing"

	"stackshot/internal/waits"
)

// FuzzJudge makes waits out of bytes: no graph makes Judge panic, and the invariants hold.
func FuzzJudge(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 1, 1, 1, 9, 1, 1, 9, 1, 1, 9, 0, 0, 1, 0, 2, 1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func() (b int) {
			if len(data) > 0 {
				b, data = int(data[0]), data[1:]
			}
			return b
		}
		most := 1 + next()%200
		if most <= 4 {
			most = 4
		}
		w := made(most, next)
		n := len(w.threads)
		odd := *w.w // what no sound reader makes
		odd.All = append(append([]*waits.Wait{nil, {}}, odd.All...), odd.All...)
		v := Judge(&odd, Options{})
		once(t, v)
		if n <= 7 {
			if err := checkDeadlocks(w, v); err != nil {
				t.Fatalf("%v\n%s", err, dump(w))
			}
		}
		if n <= 4 {
			if err := checkCulprits(w, v); err != nil {
				t.Fatalf("%v\n%s", err, dump(w))
			}
		}
	})
}

// once: no thread has two parts in a verdict, and none of our own has any (I2, I4, I6, I8).
func once(t *testing.T, v *Verdict) {
	seen := map[*waits.Wait]bool{}
	note := func(ws []*waits.Wait) {
		for _, w := range ws {
			if seen[w] || w.Thread.IsSelf() {
				t.Fatalf("thread %d again, or our own", number(w.Thread))
			}
			seen[w] = true
		}
	}
	for _, d := range v.Deadlocks {
		note(d.Part)
		note(d.Behind)
	}
	for _, c := range v.Culprits {
		note(c.Victims)
		if c.Owner.Thread != nil && c.Owner.Thread.IsSelf() {
			t.Fatal("our own thread is accused")
		}
	}
	for _, c := range v.Convoys {
		for _, w := range c.Waiters {
			if w.Thread.IsSelf() {
				t.Fatal("our own thread in a convoy")
			}
		}
	}
}
