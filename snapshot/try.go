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
	number        uint64 // of its team's tries
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
	shut          bool             // coordinator's: the try ended before its gate was open
	coordinator   atomic.Int32     // its thread, for as long as main may move it; coordinatorMoves while main does; 0 after

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
	defer runtime.UnlockOSThread()
	home := p.everywhere
	unix.SchedGetaffinity(0, &home)
	t.coordinator.Store(int32(unix.Gettid()))
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

func wakeMain(w *worker) { ring(w.wake) }

// await waits for the workers to say done. Whoever has not by the time the
// try must be over is un-pinned: it is starved behind somebody's real-time
// task, and free to run it leaves at once.
func (p *pull) await(t *try, workers []*worker, home *unix.CPUSet) {
	end := time.Now().Add(time.Duration(t.settle+t.arrivalBudget+t.pauseBudget) + waitSlack)
	left := p.collect(t, workers, end, t.onlyMissing)
	if len(left) > 0 && t.missed != nil && t.onlyMissing(len(left)) {
		t.missed(cpusOf(left))
	}
	t.returnCoordinator(home)
	if len(p.collect(t, workers, end, nil)) == 0 {
		return
	}
	t.state.expire()
	if t.shut = p.team.shut(t.number); !t.shut {
		ring(p.team.gate) // main has opened it, and may not have come to ring
	}
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
		w.freed = true
		w.unpin(&free) // off that CPU at once
	}
	p.flight.flee(&kept)
	for _, w := range p.collect(t, owing, time.Now().Add(time.Second), nil) {
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
func (t *try) fetchCoordinator(w *worker) {
	word, tid := t.state.word.Load(), t.coordinator.Load()
	if p := phaseOf(word); p == phaseIdle || p == phaseArriving || p == phaseAborted || arrivedOf(word) == t.state.want {
		return
	}
	if tid <= 0 || !t.coordinator.CompareAndSwap(tid, coordinatorMoves) {
		return
	}
	if h := w.team.hooks.fetching; h != nil {
		h()
	}
	var set unix.CPUSet
	set.Set(w.cpu)
	unix.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(tid), unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set)))
	t.coordinator.Store(0)
}

const coordinatorMoves = -1

// returnCoordinator takes this thread back to its own CPUs, from where the main
// worker may have brought it, and for good: main does not move it any more. A
// thread left where main put it would hand that CPU down to the threads it makes.
func (t *try) returnCoordinator(home *unix.CPUSet) {
	deadline := time.Now().Add(time.Second) // main is in one system call, at FIFO 99
	for t.coordinator.Load() != 0 && time.Now().Before(deadline) {
		if tid := t.coordinator.Load(); tid > 0 && t.coordinator.CompareAndSwap(tid, 0) {
			break
		}
		nap(10 * time.Microsecond)
	}
	unix.SchedSetaffinity(0, home)
}

func cpusOf(workers []*worker) (cpus []int) {
	for _, w := range workers {
		cpus = append(cpus, w.cpu)
	}
	return cpus
}

// owing are those that were woken and are not through with this try. Until the
// main worker has opened the gate, only it was.
func (t *try) owing(workers []*worker) (out []*worker) {
	for _, w := range t.notThrough(workers) {
		if !t.shut || w == workers[0] {
			out = append(out, w)
		}
	}
	return out
}

func (t *try) notThrough(workers []*worker) (out []*worker) {
	for _, w := range workers {
		if w.through.Load() != t.number {
			out = append(out, w)
		}
	}
	return out
}

// collect waits for workers to be through with the try, at most to the deadline
// or until so few are left that it is enough; it returns those that are not. The
// eventfd only wakes: it may have been rung by one that comes loose from an
// earlier try.
func (p *pull) collect(t *try, workers []*worker, deadline time.Time, enough func(left int) bool) []*worker {
	fds := []unix.PollFd{{Fd: int32(p.team.done), Events: unix.POLLIN}}
	var b [8]byte
	for {
		left := t.notThrough(workers)
		rest := time.Until(deadline)
		if len(left) == 0 || rest <= 0 || enough != nil && enough(len(left)) {
			return left
		}
		unix.Poll(fds, int(rest.Milliseconds())+1)
		unix.Read(p.team.done, b[:])
	}
}
