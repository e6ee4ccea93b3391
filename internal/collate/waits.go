package collate

import (
	"slices"

	"stackshot/internal/capture"
	"stackshot/internal/futex"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// waits are the records of what threads wait for, until all threads are known. Then the bytes
// around each futex word tell its owner, addresses become numbers if the file is redacted, and
// each task gets Apple's record of the same.
type waits struct {
	redact bool
	table  futex.Table
	tasks  []taskWaits
	bad    int // records that cannot be read
	taken  kcdata.LinuxWaitTaken
	memory *sharing
	locks  numbering[uint64]
	words  numbering[wordKey]
}

// taskWaits is a task of which threads wait.
type taskWaits struct {
	items   *kcdata.Editor
	end     kcdata.Position // of its container
	tgid    uint32
	threads []threadWait
}

// threadWait is one thread. Positions are zero where it has no such record.
type threadWait struct {
	at      int // its place in the table; -1: it is not there
	id      uint64
	wait    kcdata.Position
	futexes kcdata.Position
}

func newWaits(proc procfs.FS, dead, redact bool) *waits {
	w := &waits{redact: redact, locks: numbering[uint64]{}, words: numbering[wordKey]{}}
	w.memory = &sharing{proc: proc, dead: dead, table: &w.table, hung: map[uint32]bool{}, waiting: map[uint64][]uint32{}, maps: map[uint32]sharedMaps{}}
	return w
}

var (
	sizeOfWait  = kcdata.SizeOf(&kcdata.LinuxWait{})
	sizeOfFutex = kcdata.SizeOf(&kcdata.LinuxFutex{})
)

// visitWait takes note of a thread's records of waits, and reports whether it is one. One that
// is short, or a second one, is cut.
func (t *taskBytes) visitWait(th *threadAt, it kcdata.Item) bool {
	elem, size, count := it.Elem()
	isArray := it.Type == kcdata.TypeArray
	switch {
	case it.Type == kcdata.TypeLinuxWait && th.wait.IsZero() && len(it.Data) >= sizeOfWait:
		th.wait = it.Position()
	case isArray && elem == kcdata.TypeLinuxFutex && th.futexes.IsZero() && count > 0 && size >= sizeOfFutex:
		th.futexes = it.Position()
	case it.Type == kcdata.TypeLinuxWait || it.Type == kcdata.TypeLinuxFutex,
		isArray && (elem == kcdata.TypeLinuxWait || elem == kcdata.TypeLinuxFutex):
		t.badWait = append(t.badWait, it.Position())
	default:
		return false
	}
	return true
}

// add takes note of a task that is complete.
func (w *waits) add(t *taskBytes) {
	t.listed = w.table.Len()
	w.drops(t)
	if t.hung {
		w.memory.hung[t.linux.Tgid] = true
	}
	one := w.of(t, func(th *threadAt) int { return w.table.Add(th.facts, th.ns) })
	if len(one.threads) > 0 {
		w.tasks = append(w.tasks, one)
	}
}

// ownsFutexes reports whether the thread can be named: it has user memory, and its records agree
// on who it is.
func (t *taskBytes) ownsFutexes(th *threadAt) bool {
	return t.linux.Present&kcdata.TaskIsKernel == 0 && th.facts.Tid != 0 && uint64(th.facts.Tid) == th.id && th.facts.Tgid == t.linux.Tgid
}

// drop forgets a task that is not in the file after all.
func (w *waits) drop(t *taskBytes) {
	n := 0
	for i := range t.threads {
		if t.ownsFutexes(&t.threads[i]) {
			n++
		}
	}
	w.table.Drop(t.listed, t.listed+n)
	w.tasks = slices.DeleteFunc(w.tasks, func(one taskWaits) bool { return one.items == t.items })
}

// settle finishes the records of all tasks.
func (w *waits) settle(c *capture.Raw) {
	x := w.table.Index()
	for _, t := range w.tasks {
		for _, th := range t.threads {
			w.want(x, t.tgid, th)
		}
	}
	x.Look()
	for i := range w.tasks {
		w.task(x, &w.tasks[i])
	}
	w.end(c)
}

// want notes whom the records of a thread name.
func (w *waits) want(x *futex.Index, tgid uint32, th threadWait) {
	if wait, ok := th.kernel(); ok {
		x.WantThread(wait.OwnerTid)
	}
	if th.at < 0 {
		return
	}
	for _, f := range kcdata.Elements[kcdata.LinuxFutex](th.futexes.Item()) {
		x.Want(&f, th.at)
		w.memory.note(&f, tgid)
	}
}

func (th *threadWait) kernel() (kcdata.LinuxWait, bool) {
	if th.wait.IsZero() {
		return kcdata.LinuxWait{}, false
	}
	r, err := kcdata.Record[kcdata.LinuxWait](th.wait.Item())
	return r, err == nil
}

// task finishes the records of one task.
func (w *waits) task(x *futex.Index, t *taskWaits) {
	var infos []kcdata.ThreadWaitinfo
	for i := range t.threads {
		if info, ok := w.thread(x, t.tgid, &t.threads[i]); ok {
			infos = append(infos, info)
		}
	}
	if len(infos) == 0 {
		return
	}
	buf, bytes := kcdata.NewSticky()
	buf.Array(kcdata.TypeThreadWaitinfo, infos)
	if w.note(buf.Err); buf.Err == nil {
		t.items.InsertBefore(t.end, bytes())
	}
}

// thread finishes the records of one thread, and gives Apple's record of it. A lock of the kernel
// comes first: a thread may wait for one on its way to a futex.
func (w *waits) thread(x *futex.Index, tgid uint32, th *threadWait) (info kcdata.ThreadWaitinfo, known bool) {
	wait, ok := th.kernel()
	if ok {
		w.sum(&wait)
	}
	if w.redact && wait.Lock != 0 {
		wait.Lock = w.locks.of(wait.Lock)
		w.note(kcdata.Patch(th.wait, func(r *kcdata.LinuxWait) { r.Lock = wait.Lock }))
	}
	info, known = lockInfo(&wait, x)
	if !th.futexes.IsZero() {
		w.note(kcdata.Patch(th.futexes, func(f *kcdata.LinuxFutex) {
			if th.at >= 0 {
				x.Owner(f, th.at, w.memory)
			} else {
				futex.Clear(f)
			}
			futex.Kernel(f, &wait)
			w.sumFutex(f)
			wants := futexType(f)
			if w.redact {
				w.redacted(f, tgid)
			}
			if !known {
				info, known = futexInfo(f, wants, &wait, x)
			}
		}))
	}
	info.Waiter = th.id
	return info, known
}

// note counts a record that could not be changed.
func (w *waits) note(err error) {
	if err != nil {
		w.bad++
	}
}
