package futex

import "stackshot/kcdata"

// Thread is one thread of the capture.
type Thread struct {
	Tid, Tgid uint32 // in the recorded pid namespace
	Start     uint64 // start_boottime, ns
	Dead      bool   // it has ended, and its parent or its group has not taken note
}

// Table is the threads of a capture, each with its numbers in all pid namespaces. Its zero value is
// empty. One goroutine uses it.
type Table struct {
	threads []entry
	deeper  []level
}

type entry struct {
	Thread
	own    number // its own namespace and its number there
	absent bool   // dropped
}

// number is a thread's number in one pid namespace.
type number struct{ ns, tid uint32 }

// level is the number of a thread in a namespace between the recorded one and its own, and in
// its own.
type level struct {
	number
	at int32 // of threads
}

// Namespaces that have no inode.
const (
	recorded  = 0          // the one that the capture is of
	unknownNS = 0xffffffff // the records of this thread's namespaces make no sense: it has no number below the recorded one
)

// Add adds a thread and returns its place in the table. ns are its numbers below the recorded
// namespace, outermost first; none: that is its own.
func (t *Table) Add(th Thread, ns []kcdata.LinuxThreadNS) int {
	at := len(t.threads)
	e := entry{Thread: th, own: number{recorded, th.Tid}}
	for _, n := range ns {
		if n.Inode == recorded || n.Inode == unknownNS || n.Tid == 0 {
			e.own = number{unknownNS, 0}
			break
		}
		e.own = number{n.Inode, n.Tid}
		t.deeper = append(t.deeper, level{e.own, int32(at)})
	}
	t.threads = append(t.threads, e)
	return at
}

// Len is how many threads were added.
func (t *Table) Len() int { return len(t.threads) }

// At is the thread at a place that Add returned.
func (t *Table) At(i int) Thread { return t.threads[i].Thread }

// Process is the start of the process tgid, ns; ok is false if the table does not have its leader.
func (t *Table) Process(tgid uint32) (start uint64, ok bool) {
	for i := range t.threads {
		if e := &t.threads[i]; e.Tid == tgid && e.Tgid == tgid && !e.absent {
			return e.Start, true
		}
	}
	return 0, false
}

// Drop takes the threads from place from to place to, which is excluded, out of the table.
func (t *Table) Drop(from, to int) {
	for i := from; i < to; i++ {
		t.threads[i].absent = true
	}
}

// Index finds the threads that some futexes may be about. First Want is called for each of
// these, then Look, then Owner. It is no larger than what was wanted.
type Index struct {
	t      *Table
	wanted map[uint32]bool    // numbers
	byNS   map[number][]int32 // threads by a number in a namespace
	byOwn  map[uint32][]int32 // threads by their number in their own namespace
	sizes  map[uint32]uint32  // threads of the waiters' processes
}

// Index begins a search.
func (t *Table) Index() *Index {
	return &Index{t: t, wanted: map[uint32]bool{}, byNS: map[number][]int32{}, byOwn: map[uint32][]int32{}, sizes: map[uint32]uint32{}}
}

// Want notes whom the bytes of f may name. waiter is the place of the thread that waits.
func (x *Index) Want(f *kcdata.LinuxFutex, waiter int) {
	for _, r := range Read(f) {
		x.sizes[x.t.threads[waiter].Tgid] = 0
		if r.Number != 0 {
			x.wanted[r.Number] = true
		}
	}
}

// WantThread notes a thread by its number in the recorded namespace, for Is.
func (x *Index) WantThread(tid uint32) { x.wanted[tid] = true }

// Look finds all that was wanted.
func (x *Index) Look() {
	for i := range x.t.threads {
		e := &x.t.threads[i]
		if e.absent {
			continue
		}
		if n, ok := x.sizes[e.Tgid]; ok {
			x.sizes[e.Tgid] = n + 1
		}
		x.note(number{recorded, e.Tid}, int32(i))
		if x.wanted[e.own.tid] {
			x.byOwn[e.own.tid] = append(x.byOwn[e.own.tid], int32(i))
		}
	}
	for _, l := range x.t.deeper {
		if !x.t.threads[l.at].absent {
			x.note(l.number, l.at)
		}
	}
}

func (x *Index) note(n number, at int32) {
	if x.wanted[n.tid] {
		x.byNS[n] = append(x.byNS[n], at)
	}
}

// Is reports whether the capture has the thread tid of the recorded namespace, with that start.
func (x *Index) Is(tid uint32, start uint64) bool {
	for _, i := range x.byNS[number{recorded, tid}] {
		if x.t.threads[i].Start == start {
			return true
		}
	}
	return false
}
