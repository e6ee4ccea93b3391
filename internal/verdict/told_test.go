package verdict

import (
	"math/rand/v2"
	"testing"

	"stackshot/internal/model"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// random is a machine on which processes hold locks, wait for those of others, are stopped, sleep, or wait in D.
func random(r *rand.Rand) (all []*kcdata.Task, w *waits.Waits) {
	w = &waits.Waits{Of: map[*kcdata.Thread]*waits.Wait{}, OneInstant: true}
	for i := range 3 + r.IntN(8) {
		t := &kcdata.Task{ID: uint64(100 * (i + 1)), Name: "p"}
		for k := range 1 + r.IntN(2) {
			th := &kcdata.Thread{ID: t.ID + uint64(k), HasLinux: true}
			th.Linux.State = kcdata.StateInterruptible
			t.Threads = append(t.Threads, th)
		}
		all = append(all, t)
	}
	locks := make([][]*kcdata.Task, 1+r.IntN(3))
	for i := range locks {
		for range 1 + r.IntN(3) {
			locks[i] = append(locks[i], all[r.IntN(len(all))])
		}
	}
	whole := r.IntN(2) == 0
	for _, t := range all {
		kind := r.IntN(6)
		for _, th := range t.Threads {
			x := &waits.Wait{Task: t, Thread: th, Kind: waits.Timer, Confidence: waits.Likely, When: waits.Window, Age: model.Age{Ns: uint64(1+r.IntN(9)) * 1e9, Known: true}}
			switch kind {
			case 0:
				th.Linux.State, x.Kind = kcdata.StateStopped, waits.Stopped
			case 1:
			case 2:
				th.Linux.State, x.Kind, x.Function = kcdata.StateUninterruptible, waits.BlockIO, "io_schedule"
			default:
				n := r.IntN(len(locks))
				x.Kind, x.Resource, x.AnyOwner = waits.FileLock, waits.Resource{Kind: waits.FileLock, ID: uint64(n + 1)}, r.IntN(4) == 0
				for _, by := range locks[n] {
					if by != t && r.IntN(8) > 0 { // of a part of a file, others have other parts
						x.Owners = append(x.Owners, waits.Owner{Task: by, Thread: by.Threads[0], Tid: uint32(by.ID), Pid: uint32(by.ID), Relation: waits.Holds, Whole: whole})
					}
				}
				if r.IntN(6) == 0 {
					x.Age.Ns = 1e7
				}
			}
			x.State = model.StateOf(th)
			w.All, w.Of[th] = append(w.All, x), x
		}
	}
	return all, w
}

// Whatever is told together, nobody vanishes: each culprit is told, or named with another; who has a part in a
// finding has one in what is told; nobody is named twice.
func TestNobodyVanishes(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(20_000) {
		all, w := random(rand.New(rand.NewPCG(seed, 33)))
		v := waitgraph.Judge(w, waitgraph.Options{})
		x := For(&kcdata.Snapshot{}, v)
		told := x.Told(nil)
		named, with := map[*waitgraph.Culprit]bool{}, map[*kcdata.Task]bool{}
		for _, f := range told {
			seen := map[*kcdata.Thread]bool{}
			for _, o := range f.With {
				kinds["with"]++
				if with[o.Task] = true; seen[o.Thread] || same(&o, &f.Culprit.Owner) {
					t.Errorf("seed %d: %d is named twice", seed, o.Tid)
				}
				seen[o.Thread] = true
			}
			for _, c := range append(f.Others, f.Culprit) {
				named[c] = true
			}
		}
		for _, c := range v.Culprits {
			if !named[c] {
				kinds["dropped"]++
			}
			if !named[c] && !with[c.Owner.Task] {
				t.Errorf("seed %d: %d vanished", seed, c.Owner.Tid)
			}
		}
		for _, task := range all {
			for _, th := range task.Threads {
				only := map[*kcdata.Thread]bool{th: true}
				if len(Findings(v, only)) > 0 && len(x.Told(only)) == 0 {
					t.Errorf("seed %d: nothing is told of %d", seed, th.ID)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	if kinds["with"] == 0 || kinds["dropped"] == 0 {
		t.Errorf("only %v", kinds)
	}
}
