package collate

import (
	"errors"
	"fmt"

	"stackshot/internal/capture"
	"stackshot/internal/futex"
	"stackshot/internal/stacks"
	"stackshot/kcdata"
)

// taskBytes is one task's container, read whole, and what changes on its way out.
// Its bytes lie where they were recorded, and its fields are changed there: they are
// good for one collation.
type taskBytes struct {
	items   *kcdata.Editor
	end     kcdata.Position // of the container
	threads []threadAt
	linux   kcdata.LinuxTask
	pid     int                    // /proc has its memory under this number: its own, or a thread's
	since   uint64                 // start time of pid; 0: not known
	exe     kcdata.LinuxTaskExe    // zero: not recorded
	memory  kcdata.LinuxTaskMemory // zero: no user space
	window  windowMaps
	maps    []kcdata.Mapping // executable mappings, ascending; by enrich
	load    loaded           // what else enrich found out of them
	text    []byte           // items; by enrich
	snap    kcdata.Position  // TASK_SNAPSHOT; zero: none
	minor   uint64           // faults of the threads that live
	major   uint64
	second  *capture.Second
	listed  int               // place of the first thread in the table of waits; -1: none
	badWait []kcdata.Position // records of waits that cannot be read
	badFile []kcdata.Position // records of open files that cannot be read
	hung    bool              // /proc/PID/maps hangs; by enrich
	parts   []capture.Part
	spent   capture.Cost // of recording it
}

// threadAt is what one thread's container has. Positions are zero where the item is
// not there, or short.
type threadAt struct {
	id      uint64
	snap    kcdata.Position // THREAD_SNAPSHOT
	linux   kcdata.Position // LINUX_THREAD
	kernel  kcdata.Position // its kernel stack
	end     kcdata.Position // of the container
	stack   bool            // has a user stack
	sampled []uint64        // its addresses, where a sample has them
	user    stacks.UserSide
	wait    kcdata.Position // LINUX_WAIT
	futexes kcdata.Position // array of LINUX_FUTEX
	files   kcdata.Position // array of LINUX_FILE
	sockets kcdata.Position // array of LINUX_SOCKET
	facts   futex.Thread    // zero: LINUX_THREAD is not there
	ns      []kcdata.LinuxThreadNS
	taken   bool   // the stop took it off its CPU
	self    bool   // one of our own
	onCPU   int    // where it runs or ran; -1: nowhere
	ip      uint64 // where it was in user mode; 0: not recorded
	inner   uint32 // its number in its own pid namespace; 0: that of the machine's first
}

// leastThread is about the least that is recorded of a thread, bytes. The number of threads is not
// believed beyond that: it may be out of the memory of a dead machine.
const leastThread = 256

// openTask checks that the parts hold exactly one task container, whole, and finds
// what collation needs of it.
func openTask(x *capture.Second, parts []capture.Part) (*taskBytes, error) {
	var pieces [][]byte
	for _, p := range parts {
		pieces = append(pieces, p.Pieces...)
	}
	return openPieces(x, parts, pieces)
}

// openPieces is openTask for parts whose pieces were loaded.
func openPieces(x *capture.Second, parts []capture.Part, pieces [][]byte) (*taskBytes, error) {
	t := &taskBytes{second: x.Of(&parts[0]), parts: parts}
	threads, bytes := 0, 0
	for _, p := range parts {
		t.spent, threads = t.spent.Plus(p.Cost), threads+int(p.Threads)
	}
	for _, p := range pieces {
		bytes += len(p)
	}
	t.threads = make([]threadAt, 0, min(threads, bytes/leastThread))
	t.items = kcdata.NewEditor(pieces...)
	for it, err := range t.items.Items() {
		if err == nil {
			err = t.visit(it)
		}
		if err != nil {
			return nil, err
		}
	}
	if t.end.IsZero() {
		return nil, errors.New("no task container")
	}
	return t, t.addFaults()
}

func (t *taskBytes) visit(it kcdata.Item) (err error) {
	switch {
	case it.Depth == 0 && it.Type == kcdata.TypeContainerEnd:
		t.end = it.Position()
	case it.Depth == 0:
		if it.Offset > 0 {
			return fmt.Errorf("an item at offset %d is outside the task's container", it.Offset)
		}
	case it.Type == kcdata.TypeContainerBegin && it.ContainerType() == kcdata.TypeThread:
		t.threads = append(t.threads, threadAt{id: it.ContainerID(), onCPU: -1})
	case it.Type == kcdata.TypeTaskSnapshot:
		t.snap = it.Position()
	case it.Type == kcdata.TypeLinuxTask:
		t.linux, err = kcdata.Record[kcdata.LinuxTask](it)
		t.pid, t.since = int(t.linux.Tgid), t.linux.StartBoottime
	case it.Type == kcdata.TypeLinuxTaskMemory:
		t.memory, err = kcdata.Record[kcdata.LinuxTaskMemory](it)
	case it.Type == kcdata.TypeLinuxTaskExe:
		t.exe, err = kcdata.Record[kcdata.LinuxTaskExe](it)
	case t.window.visit(it):
	case len(t.threads) > 0 && t.threads[len(t.threads)-1].end.IsZero():
		return t.visitThread(&t.threads[len(t.threads)-1], it)
	}
	return err
}

var (
	sizeOfLinuxThread    = kcdata.SizeOf(&kcdata.LinuxThread{})
	sizeOfThreadSnapshot = kcdata.SizeOf(&kcdata.ThreadSnapshot{})
)

// visitThread looks at an item between a thread's begin and its end.
func (t *taskBytes) visitThread(th *threadAt, it kcdata.Item) error {
	if ours, err := th.user.Visit(it); ours {
		return err
	}
	switch {
	case it.Type == kcdata.TypeContainerEnd && it.Depth == 1:
		th.end = it.Position()
	case it.Type == kcdata.TypeThreadSnapshot && len(it.Data) >= sizeOfThreadSnapshot:
		th.snap = it.Position()
		return kcdata.Patch(th.snap, func(s *kcdata.ThreadSnapshot) { stacks.SetFlags(s, 0, 0) }) // Truncated
	case t.visitWait(th, it), t.visitFile(th, it):
	case it.Type == kcdata.TypeLinuxThread:
		return t.visitLinux(th, it)
	case it.Type == kcdata.TypeLinuxSyscall:
		call, err := kcdata.Record[kcdata.LinuxSyscall](it)
		th.ip = call.IP
		return err
	case it.Type == kcdata.TypeArray:
		switch elem, _, _ := it.Elem(); elem {
		case kcdata.TypeKernStackLR64:
			th.kernel = it.Position()
		case kcdata.TypeUserStackLR64:
			th.stack = true
		case kcdata.TypeLinuxThreadNS: // outermost first
			if th.ns = kcdata.Elements[kcdata.LinuxThreadNS](it); len(th.ns) > 0 {
				th.inner = th.ns[len(th.ns)-1].Tid
			}
		}
	}
	return nil
}

func (t *taskBytes) visitLinux(th *threadAt, it kcdata.Item) error {
	if len(it.Data) >= sizeOfLinuxThread {
		th.linux = it.Position()
	}
	lx, err := kcdata.Record[kcdata.LinuxThread](it)
	t.minor, t.major = t.minor+lx.MinFlt, t.major+lx.MajFlt
	if t.second != nil {
		t.second.Look(&lx)
	}
	th.facts = futex.Thread{Tid: lx.Tid, Tgid: lx.Tgid, Start: lx.StartBoottime, Dead: lx.ExitState != 0}
	if lx.OnCPU != 0 {
		th.onCPU = int(lx.CPU)
	}
	th.self = lx.Present&kcdata.ThreadIsSelf != 0
	th.taken = lx.OnCPU != 0 && lx.Present&(kcdata.ThreadIsSelf|kcdata.ThreadIsIdle) == 0
	return err
}

// addFaults makes ts_faults and ts_pageins the sums over the whole task. The record of
// the window has only those of its dead threads, which signal_struct sums up
// (__exit_signal of kernel/exit.c). /proc gives the sum of both.
func (t *taskBytes) addFaults() error {
	if t.snap.IsZero() || t.linux.Present&kcdata.TaskHasFaults == 0 {
		return nil
	}
	return kcdata.Patch(t.snap, func(s *kcdata.TaskSnapshot) {
		s.Faults += uint32(t.minor + t.major)
		s.Pageins += uint32(t.major)
	})
}

// addUser sums up what was taken of one thread.
func addUser(u *kcdata.LinuxUserTaken, w *kcdata.LinuxUserWalk) {
	u.Threads++
	u.Walked += uint64(w.Flags & kcdata.UserWalked)
	if w.Flags&(kcdata.UserPagedOut|kcdata.UserNoPage) != 0 {
		u.PagedOut++
	}
	u.Links += uint64(w.Links)
	u.Bytes += uint64(w.Bytes)
	u.Absent += uint64(w.Absent)
	u.Refused += uint64(w.Refused)
	u.Translations += uint64(w.Translations)
}
