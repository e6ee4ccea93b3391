package snapshot

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
)

// A try is one stop of the machine. Fields of the first group are set before
// the wake and constant from then on; the second group is written by the main
// worker in the window; state is everybody's (state.go).
type try struct {
	mem           *memory
	size          size
	workers       int // threads that stop a CPU
	pids          []bpf.CensusEntry
	self          uint32
	taskProg      int
	idleProg      int // -1: idle threads are not recorded
	slots         bpf.Slots
	arrivalBudget int64 // ns
	pauseBudget   int64 // ns
	settle        int64 // ns
	latency       int   // level, as of Options.Latency
	recountProg   int   // -1: there is no second pass
	stopTaking    func() bool
	missed        func(cpus []int) // job's
	coordinator   atomic.Int32     // its thread, for as long as run lasts; 0 after

	censusPass  bpf.Iterator
	censusBuf   [censusRead]byte
	censusErr   unix.Errno
	censusWhole bool
	seenTasks   int
	seenThreads int
	recounted   int  // bytes of mem.second that are filled
	recountDone bool // every thread was read again

	trap *bpf.Trap // nil: the workers record themselves

	*stopWords
}

// stopWords is what the workers share; its layout is the first line of struct
// stop (internal/bpf/trap.h), and where the kernel's side records it lies there.
type stopWords struct {
	state    stopState
	arriveBy atomic.Int64 // CLOCK_MONOTONIC ns, written before the gate opens
	pauseBy  atomic.Int64
}

// waitSlack is what the coordinator, an ordinary thread, allows for being
// scheduled at all on a busy machine.
const waitSlack = 200 * time.Millisecond

// run stops the machine once with the given workers, the first of which is
// main, and returns when all are parked again or were given up. missing are
// those whose CPU did not arrive.
func (p *pull) run(t *try, workers []*worker) (missing []*worker) {
	runtime.LockOSThread()
	home := p.everywhere
	unix.SchedGetaffinity(0, &home)
	t.coordinator.Store(int32(unix.Gettid()))
	defer func() {
		t.coordinator.Store(0)
		runtime.UnlockOSThread()
	}()
	t.state.begin(len(workers))
	drainEvents(p.team.done)
	drainEvents(p.team.gate)
	if h := p.team.hooks.beforeWake; h != nil {
		h()
	}
	wakeMain(workers[0])
	p.await(t, workers, &home)
	for _, w := range workers {
		if w.away || !w.stamp.in {
			missing = append(missing, w)
		}
	}
	return missing
}

func wakeMain(w *worker) {
	one := [8]byte{1}
	unix.Write(w.wake, one[:])
}

// await waits for the workers to say done. Whoever has not by the time the
// try must be over is un-pinned: it is starved behind somebody's real-time
// task, and free to run it leaves at once.
func (p *pull) await(t *try, workers []*worker, home *unix.CPUSet) {
	end := time.Now().Add(time.Duration(t.settle+t.arrivalBudget+t.pauseBudget) + waitSlack)
	left := p.collect(len(workers), end, t.onlyMissing)
	if left > 0 && t.missed != nil && t.onlyMissing(left) {
		t.missed(absent(workers))
	}
	unix.SchedSetaffinity(0, home) // from where the main worker may have brought it
	if p.collect(left, end, nil) == 0 {
		return
	}
	t.state.expire()
	owing := t.owing(workers)
	var kept unix.CPUSet
	for _, w := range owing {
		kept.Set(w.cpu)
	}
	free := without(&p.everywhere, &kept)
	if free.Count() == 0 {
		free = p.everywhere
	}
	for _, w := range owing {
		w.unpin(&free) // off that CPU at once
	}
	p.flight.flee(&kept)
	deadline := time.Now().Add(time.Second)
	for len(t.owing(owing)) > 0 && time.Now().Before(deadline) {
		p.collect(1, time.Now().Add(10*time.Millisecond), nil)
	}
	for _, w := range t.owing(owing) {
		w.away = true
	}
}

// onlyMissing reports whether all who took part have left, so that of the rest
// nobody is waited for but those that did not come.
func (t *try) onlyMissing(left int) bool {
	w := t.state.word.Load()
	return phaseOf(w) == phaseReleased && uint64(left) <= t.state.want-arrivedOf(w)
}

// fetchCoordinator brings the coordinator to the CPU of the main worker, which
// calls it when a CPU has not come: there it may sit behind the very task that
// keeps that CPU, and then what it asks would be answered a second too late.
func (t *try) fetchCoordinator(cpu int) {
	w, tid := t.state.word.Load(), t.coordinator.Load()
	if p := phaseOf(w); p == phaseIdle || p == phaseArriving || p == phaseAborted || arrivedOf(w) == t.state.want || tid == 0 {
		return
	}
	var set unix.CPUSet
	set.Set(cpu)
	unix.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(tid), unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set)))
}

func absent(workers []*worker) (cpus []int) {
	for _, w := range workers {
		if !w.through.Load() {
			cpus = append(cpus, w.cpu)
		}
	}
	return cpus
}

// owing are those that were woken and have not said done. Until the main
// worker has opened the gate, only it was.
func (t *try) owing(workers []*worker) (out []*worker) {
	for i, w := range workers {
		if !w.through.Load() && (i == 0 || t.arriveBy.Load() != 0) {
			out = append(out, w)
		}
	}
	return out
}

// collect waits for n workers to say done, at most to the deadline or until so
// few are left that it is enough; it returns how many have not.
func (p *pull) collect(n int, deadline time.Time, enough func(left int) bool) int {
	fds := []unix.PollFd{{Fd: int32(p.team.done), Events: unix.POLLIN}}
	var b [8]byte
	for n > 0 && (enough == nil || !enough(n)) {
		rest := time.Until(deadline)
		if rest <= 0 {
			return n
		}
		unix.Poll(fds, int(rest.Milliseconds())+1)
		if k, _ := unix.Read(p.team.done, b[:]); k == 8 {
			n -= int(b[0]) | int(b[1])<<8
		}
	}
	return n
}

// drainEvents takes what is left in an eventfd by an earlier try.
func drainEvents(fd int) {
	var b [8]byte
	for {
		if _, err := unix.Read(fd, b[:]); err != nil {
			return
		}
	}
}
