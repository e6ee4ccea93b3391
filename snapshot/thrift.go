package snapshot

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"stackshot/internal/engine"
	"stackshot/internal/limits"
	"stackshot/internal/procfs"
)

// ErrNoRoom says that a capture needs more of something than there is left: process
// ids, which threads take too, or memory. The Go runtime, or the kernel, would end
// this process in the middle of it.
var ErrNoRoom = errors.New("too little is left for a capture")

// What a capture takes of process ids, beside what this process has already: the
// threads of the Go runtime that run goroutines, of which the engines that stop the
// machine need twice the workers and two (internal/engine/stop/procs.go), its others (signals, the
// monitor, the collector's), and threads that are in system calls.
const (
	runtimeThreads = 5
	procReaders    = procfs.DefaultMaxWrittenOff
	fileReaders    = 4 // foreign.DefaultHelpers: a thread each, and a process
	readerThreads  = 6 // of such a process
	endReaders     = 2 // threads of the look for the other ends of files (internal/ends)
)

// thrift says what a capture leaves out because process ids or memory are short.
type thrift struct {
	readers int   // of /proc, at once; 0: the default
	files   error // why no file of another process is read; nil: they may be
	engine  error // why nothing is stopped; nil: it may be
	threads int   // to be had at once, before others take them; 0: as they are needed
}

// thriftOf is what a capture that stops so many CPUs can do with the process ids that
// are left. An error: not even the least is possible.
func thriftOf(cpus int, left limits.Room) (thrift, error) {
	stop := 3*cpus + 2 + runtimeThreads
	least := runtime.GOMAXPROCS(0) + 1 + runtimeThreads
	whole := wholePids(cpus)
	why := func(need int) error {
		return fmt.Errorf("%d more threads and processes are allowed, and a capture takes %d: %v", left.Free, need, left)
	}
	switch {
	case left.Free >= int64(whole):
		return thrift{}, nil
	case left.Free >= int64(stop+2):
		return thrift{readers: 1, files: why(whole), threads: stop}, nil
	case left.Free >= int64(least):
		return thrift{readers: 1, files: why(whole), engine: why(stop + 2), threads: least - 1}, nil
	}
	return thrift{}, fmt.Errorf("%w: %w", ErrNoRoom, why(least))
}

// wholePids is what a capture that lacks nothing takes.
func wholePids(cpus int) int {
	return 3*cpus + 2 + runtimeThreads + procReaders + endReaders + 1 + fileReaders*(1+readerThreads)
}

// errScarce is the reason in the file for each program file that was not read.
var errScarce = errors.New("not read: too few process ids, or too little memory, is left")

// refuse is why no file is opened; nil: files are opened.
func (t thrift) refuse() error {
	if t.files == nil {
		return nil
	}
	return errScarce
}

// makeThreads lets the runtime make n threads now and keep them for later. They are
// needed soon, and if few process ids are left, others may have taken them by then.
func makeThreads(n int) {
	var made, done sync.WaitGroup
	made.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread()
			made.Done()
			made.Wait() // all are there at once, so none is another's
			runtime.UnlockOSThread()
		})
	}
	done.Wait()
}

// beThrifty counts the process ids that are left, decides what to leave out, and warns.
func (s *Session) beThrifty() error {
	cpus := len(s.plan.Stop)
	t, err := thriftOf(cpus, pidsLeft(&s.hooks, int64(wholePids(cpus))))
	if err != nil {
		return err
	}
	if t.engine != nil && s.options.Engine != EngineAuto && s.options.Engine != EngineProcfs {
		return fmt.Errorf("engine %s: %w: %w", s.options.Engine, ErrNoRoom, t.engine)
	}
	if s.thrift = t; t.files != nil {
		s.warn("few_pids", "no program files are read, so build-ids and callers in user stacks may be missing: "+t.files.Error())
	}
	makeThreads(t.threads)
	return nil
}

func pidsLeft(h *engine.Hooks, enough int64) limits.Room {
	if h.FewPids != nil {
		return *h.FewPids
	}
	return limits.Machine{}.Pids(enough)
}
