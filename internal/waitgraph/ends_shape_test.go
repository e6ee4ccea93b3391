package waitgraph

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"stackshot/internal/model"
	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// processes makes n processes with one thread each, which waits for what edges says.
func processes(n int, edges func(i int, whole func(i int) waits.Owner) []waits.Owner) *waits.Waits {
	w := &waits.Waits{OneInstant: true}
	tasks := make([]*kcdata.Task, n)
	for i := range tasks {
		th := &kcdata.Thread{ID: uint64(1000 + i), HasLinux: true}
		th.Linux = kcdata.LinuxThread{Present: kcdata.ThreadHasOnCPU, State: kcdata.StateInterruptible}
		tasks[i] = &kcdata.Task{ID: th.ID, Threads: []*kcdata.Thread{th}}
	}
	whole := func(i int) waits.Owner {
		o := processOf(tasks[i])
		o.Relation, o.Owes = waits.OtherEnd, true
		return o
	}
	for i, t := range tasks {
		w.All = append(w.All, &waits.Wait{
			Task: t, Thread: t.Threads[0], State: model.StateOf(t.Threads[0]), Age: model.Age{Ns: uint64(old), Known: true}, Kind: waits.Socket,
			AnyOwner: true, Owners: edges(i, whole), Evidence: waits.After, Confidence: waits.Sure, When: waits.Window,
		})
	}
	return w
}

// withStacks makes a pool of n threads, of which half wait for news, and half for a lock that one of those
// has. Each stack has 60 frames, of long names.
func withStacks(n int) *waits.Waits {
	w := newWorld()
	of := map[int]string{}
	frames := ""
	for i := range 60 {
		frames += fmt.Sprintf(" %s%d+8", strings.Repeat("name::", 40), i)
	}
	for i := range n {
		if of[i] = "wait" + frames; i < n/2 {
			w.waits(i, waits.UserCondvar, old)
			continue
		}
		of[i] = "pthread_mutex_lock" + frames
		w.waits(i, waits.UserMutex, old, w.holds(0)).Resource = waits.Resource{Kind: waits.Futex, ID: 7}
	}
	w.stacks(of)
	for _, task := range w.tasks {
		task.Linux.Ppid = 99999
	}
	return w.w
}

// Processes with many ends take time and memory in proportion (I9, I10): 10,000 with 50,000
// edges, and a pool of 300 of which each has an end of all of 400 clients, ten times. Load of the machine
// only adds: the best of five counts.
func TestI9OfProcesses(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	if raced {
		t.Skip("the race detector takes the time")
	}
	r := rand.New(rand.NewPCG(10, 14))
	for name, w := range map[string]*waits.Waits{
		"10,000": processes(10_000, func(i int, whole func(int) waits.Owner) (out []waits.Owner) {
			for range 5 {
				out = append(out, whole(r.IntN(10_000)))
			}
			return out
		}),
		"a pool": processes(700, func(i int, whole func(int) waits.Owner) (out []waits.Owner) {
			if i >= 300 { // a client: any of the pool
				for p := range 300 {
					out = append(out, whole(p))
				}
				return out
			}
			for range 10 {
				for c := range 400 {
					out = append(out, whole(300+c))
				}
			}
			return out
		}),
		"a pool with stacks": withStacks(20_000),
	} {
		best, grew := time.Hour, int64(0)
		for range 5 {
			grew = testheap.Growth(func() {
				began := time.Now()
				if v := Judge(w, Options{}); len(v.Deadlocks)+len(v.Pools) == 0 {
					t.Errorf("%s: no deadlock, no pool", name)
				}
				best = min(best, time.Since(began))
			})
		}
		if t.Logf("%s: %v, heap grew by %d MiB", name, best, grew>>20); best > 3*time.Second || grew > 256<<20 {
			t.Errorf("%s: %v and %d MiB, at most 3 s and 256 MiB", name, best, grew>>20)
		}
	}
}
