package pull

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
	"stackshot/workqueue"
)

// censusRead is how many bytes of census one read returns: small enough that
// the other workers have something to do soon after the stop.
const censusRead = 256 * bpf.CensusEntrySize

// try is what engine pull does in one try. Fields of the first group are set
// before the wake and constant from then on; the second group is written by the
// main worker in the window.
type try struct {
	*stop.Try
	mem        *engine.Memory
	workers    int
	pids       []bpf.CensusEntry
	self       uint32
	programs   *bpf.Pull           // RecordIdle nil: idle threads are not recorded; Recount nil: there is no second pass
	latency    int                 // engine.LevelOff and up
	recordings []*engine.Recording // by a worker's slot; each is its worker's
	stopTaking func() bool

	censusPass  bpf.Iterator
	censusBuf   [censusRead]byte
	censusErr   unix.Errno
	censusWhole bool
	seenTasks   int
	seenThreads int
	secondLen   int  // bytes of mem.Second that are filled
	secondDone  bool // every thread was read again
}

// census fills the queues, by the main worker, while the others drain them.
// Items get their index in the order found; populated is published last.
func (t *try) census(w *stop.Worker) {
	defer t.mem.Queue.Populated()
	if t.pids != nil {
		for i, p := range t.pids {
			t.push(w, uint32(i), p)
		}
		return
	}
	index := uint32(0)
	if t.programs.RecordIdle != nil {
		t.push(w, 0, bpf.CensusEntry{Tgid: capture.IdleTask, Threads: uint32(t.workers)})
		index++
	}
	for t.State.Recording() && clock.Nanotime() < t.PauseBy.Load() {
		n, errno := t.censusPass.Read(t.censusBuf[:])
		if errno != 0 {
			t.censusErr = errno
			return
		}
		if n == 0 {
			t.censusWhole = true
			return
		}
		for off := 0; off+bpf.CensusEntrySize <= n; off += bpf.CensusEntrySize {
			if !t.push(w, index, *(*bpf.CensusEntry)(unsafe.Pointer(&t.censusBuf[off]))) {
				return
			}
			index++
		}
	}
}

// push counts and queues one thread group. False: the queue is full, which is
// a lack of memory like any other.
func (t *try) push(w *stop.Worker, index uint32, e bpf.CensusEntry) bool {
	t.seenTasks++
	t.seenThreads += int(e.Threads)
	err := t.mem.Queue.Push(workqueue.Item{Index: index, Tgid: int32(e.Tgid), Count: e.Threads})
	if err != nil {
		t.State.NoSpace()
		return false
	}
	return true
}

// program is what records an item, and over which scope.
func (t *try) program(it workqueue.Item) (int, bpf.Scope) {
	if it.Tgid == capture.IdleTask {
		return t.programs.RecordIdle.FD(), bpf.TaskScope(t.self)
	}
	return t.programs.RecordTask.FD(), bpf.TaskScope(uint32(it.Tgid))
}

func (t *try) openCensus(prog int) error {
	if t.pids != nil {
		return nil
	}
	if errno := t.censusPass.Open(prog, &bpf.Scope{}); errno != 0 {
		return fmt.Errorf("open the census iterator: %w", errno)
	}
	return nil
}

func (t *try) CloseCensus() {
	if t.pids == nil {
		t.censusPass.Close()
	}
}
