package waitgraph

import (
	"slices"
	"time"

	"stackshot/internal/model"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// world is a machine by hand. Thread n is of process n/2, so that (tgid, tid) is the order of n.
type world struct {
	tasks   map[int]*kcdata.Task
	threads map[int]*kcdata.Thread
	w       *waits.Waits
}

func newWorld() *world {
	return &world{map[int]*kcdata.Task{}, map[int]*kcdata.Thread{}, &waits.Waits{OneInstant: true, Of: map[*kcdata.Thread]*waits.Wait{}}}
}

// thread makes thread n, which sleeps, if there is none.
func (w *world) thread(n int) *kcdata.Thread {
	if w.threads[n] == nil {
		pid := 1 + n/2
		if w.tasks[pid] == nil {
			w.tasks[pid] = &kcdata.Task{ID: uint64(pid)}
		}
		th := &kcdata.Thread{ID: uint64(1000 + n), HasLinux: true}
		th.Linux = kcdata.LinuxThread{Present: kcdata.ThreadHasOnCPU, State: kcdata.StateInterruptible, CPU: uint32(n), Prio: 120}
		w.tasks[pid].Threads = append(w.tasks[pid].Threads, th)
		w.threads[n] = th
	}
	return w.threads[n]
}

func (w *world) task(n int) *kcdata.Task { w.thread(n); return w.tasks[1+n/2] }

// running puts thread n on a CPU.
func (w *world) running(n int) *kcdata.Thread {
	th := w.thread(n)
	th.Linux.State, th.Linux.OnCPU = 0, 1
	return th
}

// in puts thread n into a state of the kernel.
func (w *world) in(n int, state uint32) *kcdata.Thread {
	th := w.thread(n)
	th.Linux.State = state
	return th
}

const (
	old   = 5 * time.Second
	young = 10 * time.Millisecond
)

// waits lets thread n wait for so long; age < 0: it is not known.
func (w *world) waits(n int, k waits.Kind, age time.Duration, owners ...waits.Owner) *waits.Wait {
	th := w.thread(n)
	wait := &waits.Wait{
		Task: w.task(n), Thread: th, State: model.StateOf(th), Age: model.Age{Ns: uint64(age), Known: true}, Kind: k, Owners: owners,
		Evidence: waits.Field, Confidence: waits.Sure, When: waits.Window,
	}
	if age < 0 {
		wait.Age = model.Age{}
	}
	w.w.All = append(w.w.All, wait)
	w.w.Of[th] = wait
	return wait
}

// d lets thread n wait in D.
func (w *world) d(n int, k waits.Kind, age time.Duration, owners ...waits.Owner) *waits.Wait {
	w.in(n, kcdata.StateUninterruptible)
	return w.waits(n, k, age, owners...)
}

// by is an edge to thread n.
func (w *world) by(r waits.Relation, n int) waits.Owner {
	o := ownerOf(w.task(n), w.thread(n))
	o.Relation = r
	return o
}

// whole is an edge to the process of thread n.
func (w *world) whole(r waits.Relation, n int) waits.Owner {
	w.thread(n)
	o := processOf(w.task(n))
	o.Relation = r
	return o
}

// owes is whole, of a process that owes an answer.
func (w *world) owes(r waits.Relation, n int) waits.Owner {
	o := w.whole(r, n)
	o.Owes = true
	return o
}

// unread says that bytes of x's thread lie at the other end.
func unread(x *waits.Wait) *waits.Wait { x.File.Unread = 1; return x }

// at says of which file the wait is.
func at(x *waits.Wait, kind, flags uint32) *waits.Wait {
	x.File = &waits.OpenFile{File: &kcdata.LinuxFile{Kind: kind, Flags: flags}, Of: 1}
	return x
}

func (w *world) holds(n int) waits.Owner { return w.by(waits.Holds, n) }

// number is n of a thread that the world made.
func number(th *kcdata.Thread) int { return int(th.ID) - 1000 }

func numbers(ws []*waits.Wait) (out []int) {
	for _, w := range ws {
		out = append(out, number(w.Thread))
	}
	return out
}

var (
	madeKinds     = []waits.Kind{waits.Mutex, waits.UserMutex, waits.ChildEnd, waits.BlockIO, waits.Timer, waits.AtRest, waits.Poll, waits.CPU, waits.Stopped, waits.Traced, waits.Frozen, waits.Vfork, waits.Semaphore, waits.Socket, waits.FileLock}
	madeRelations = []waits.Relation{waits.Holds, waits.Holds, waits.Holds, waits.Child, waits.Child, waits.Last, waits.Tracer, waits.Joined, waits.Execs, waits.Runs}
	endRelations  = []waits.Relation{waits.OtherEnd, waits.Listener, waits.Server, waits.Pager}
	madeAges      = []time.Duration{old, old, 2 * old, 3 * old, time.Second, time.Second - 1, 0, -1}
	madeStates    = []uint32{0, kcdata.StateInterruptible, kcdata.StateUninterruptible, kcdata.StateStopped, kcdata.StateTraced, kcdata.StateFrozen, kcdata.StateParked, kcdata.StateDead}
)

// made is a world out of bytes: at most most threads, each of any kind and with any owners.
func made(most int, next func() int) *world {
	w := newWorld()
	n := 1 + next()%most
	w.w.OneInstant = next()%4 != 0
	waiting := make([]bool, n)
	for i := range n {
		th := w.thread(i)
		waiting[i] = next()%4 != 0
		if th.Linux.State = madeStates[next()%len(madeStates)]; th.Linux.State == 0 {
			th.Linux.OnCPU = uint32(next() % 2)
		}
		switch next() % 16 {
		case 0:
			th.Linux.Present |= kcdata.ThreadIsSelf
		case 1:
			th.Linux.Policy, th.Linux.Prio = schedFIFO, 50
		case 2:
			w.running(i)
			w.w.CPUs = append(w.w.CPUs, kcdata.LinuxCPU{CPU: uint32(i), Flags: kcdata.CPUMissed})
		}
	}
	for i := range n {
		if waiting[i] {
			madeWait(w, i, n, next)
		}
	}
	return w
}

func madeWait(w *world, i, n int, next func() int) {
	wait := w.waits(i, madeKinds[next()%len(madeKinds)], madeAges[next()%len(madeAges)])
	wait.AnyOwner = next()%3 == 0
	wait.Resource = waits.Resource{Kind: wait.Kind, ID: uint64(next() % 3)}
	seen := map[int]bool{}
	for range next() % 4 {
		to := next() % (n + 1)
		if seen[to] {
			continue
		}
		seen[to] = true
		o := waits.Owner{Tid: 7, Pid: 7000, Relation: madeRelations[next()%len(madeRelations)]}
		if to < n {
			o = w.by(o.Relation, to)
			if next()%3 == 0 {
				o = w.whole(o.Relation, to)
			}
			if next()%3 == 0 {
				o.Relation = endRelations[next()%len(endRelations)]
				o.Owes = next()%2 == 0
			}
		}
		o.Dead = next()%16 == 0 && !o.Whole
		wait.Owners = append(wait.Owners, o)
	}
	if next()%2 == 0 {
		madeFile(wait, next)
	}
	switch next() % 8 {
	case 0:
		wait.Timed = true
	case 1:
		wait.Confidence = waits.Likely
	case 2:
		wait.When = []waits.When{waits.NotAtOne, waits.Later}[next()%2]
	}
}

// madeFile lets a wait be at a file.
func madeFile(wait *waits.Wait, next func() int) {
	kinds := []uint32{kcdata.FilePipe, kcdata.FileSocket, kcdata.FileFIFO, kcdata.FileEventfd, kcdata.FileOther}
	at(wait, kinds[next()%len(kinds)], 0)
	f := wait.File.File
	switch next() % 8 {
	case 0:
		f.Flags = kcdata.FileToWrite
	case 1:
		f.Flags = kcdata.FileCatches
	case 2:
		f.Op = kcdata.FileOpPoll
	case 3:
		f.OFlags = 2
	case 4:
		wait.File.Says = waits.Serves
	case 5:
		wait.File.Says = waits.Elsewhere
	case 6:
		wait.File.Others = 1
	}
	switch next() % 4 {
	case 0:
		wait.File.Unread = 1
	case 1:
		f.Op = kcdata.FileOpAccept
	}
}

// chainOf is the way from w up through a tree, to the culprit or a thread of the deadlock: the
// branches, of which the last one's Owner is that. nil: w is no victim of the tree.
func chainOf(tree []Branch, w *waits.Wait) (chain []Branch) {
	for at := slices.IndexFunc(tree, func(b Branch) bool { return b.Victim && b.Wait == w }); at >= 0; at = tree[at].Up {
		chain = append(chain, tree[at])
	}
	return chain
}
