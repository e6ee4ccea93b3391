package snapshot

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/clock"
	"stackshot/internal/procfs"
	"stackshot/internal/testtask"
)

// BenchmarkScale takes the whole machine with each engine in turn, as its
// threads grow in number: the points of docs/performance.md.
//
//	threads          on the machine: those there anyway, filled up to the size
//	trap-ns, pull-ns median time the machine stood still, options as by default
//	bare-ns          the same of trap without user stacks
//	procfs-ns        median time of engine procfs, which stops nothing
//	sequential-ns    the same of one pass of a task iterator, read by one thread
//	…/trap           median ratio of times per thread within a round
func BenchmarkScale(b *testing.B) {
	for _, threads := range []int{100, 300, 1000, 3000, 10000} {
		b.Run(fmt.Sprint("threads=", threads), func(b *testing.B) {
			requireBPF(b)
			atScale(b, threads)
		})
	}
}

func atScale(b *testing.B, threads int) {
	pull := benchSession(b, Options{Engine: EnginePull})
	r := &rounds{entrants: []*entrant{
		stopped("trap", benchSession(b, Options{Engine: EngineTrap})),
		stopped("bare", benchSession(b, Options{Engine: EngineTrap, UserStacks: UserStacksOff})), stopped("pull", pull),
		unstopped("procfs", benchSession(b, Options{Engine: EngineProcfs})), sequential(b, "sequential", pull),
	}}
	if more := threads - threadsNow(b); more > 0 {
		testtask.Start(b, fill(more)...)
	}
	r.run(b)
	for _, e := range r.entrants {
		var ns, n []float64
		for _, s := range e.samples {
			ns, n = append(ns, s.ns), append(n, s.threads)
		}
		b.ReportMetric(median(ns), e.name+"-ns")
		if e.name == "trap" {
			b.ReportMetric(median(n), "threads")
			continue
		}
		r.reportRatio(b, e.name, "trap")
	}
	r.reportRatio(b, "procfs", "bare")
	r.reportRatio(b, "pull", "procfs")
}

// fill is n threads, as a crowd where there are enough for one.
func fill(n int) []testtask.Kind {
	if n < 48 {
		return []testtask.Kind{testtask.Bystanders(n)}
	}
	return benchCrowd(n)
}

// threadsNow counts the machine's threads, kernel threads included.
func threadsNow(tb testing.TB) (n int) {
	tb.Helper()
	fs := procfs.FS{}
	tasks, err := fs.Tasks()
	if err != nil {
		tb.Fatal(err)
	}
	for _, pid := range tasks {
		if list, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)); err == nil {
			n += len(list)
		}
	}
	return n
}

// unstopped is engine procfs: tasks may end meanwhile, and then are not in it.
func unstopped(name string, s *Session) *entrant {
	return &entrant{name: name, measure: func() (sampleRow, error) {
		began := clock.Nanotime()
		c, err := underLock(s)
		if err != nil {
			return sampleRow{}, err
		}
		v := sampleOf(c)
		v.ns = float64(clock.Nanotime() - began)
		return v, nil
	}}
}

// sequential is what one thread gets from the kernel without any of this: the
// recording program of engine pull, over every task, one read after another.
// It has the objects of a session, whose workers must be parked.
func sequential(tb testing.TB, name string, s *Session) *entrant {
	tb.Helper()
	p := s.team
	programs, err := p.Objects.LoadPull()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(programs.Close)
	buf := make([]byte, 64<<10)
	return &entrant{name: name, measure: func() (v sampleRow, err error) {
		undo, err := pinTo(s.plan.Main)
		if err != nil {
			return sampleRow{}, err
		}
		defer undo()
		clear(p.Objects.Slots) // the program counts in its CPU's
		began := clock.Nanotime()
		err = readAll(programs.RecordTask.FD(), buf)
		v.ns = float64(clock.Nanotime() - began)
		v.threads = float64(p.Objects.Slots[s.plan.Main].Threads)
		programs.KeepAlive()
		if err == nil && v.threads == 0 {
			err = errors.New("the iterator showed no thread")
		}
		return v, err
	}}
}

func readAll(program int, buf []byte) error {
	var it bpf.Iterator
	if errno := it.Open(program, &bpf.Scope{}); errno != 0 {
		return fmt.Errorf("open an iterator of all tasks: %w", errno)
	}
	defer it.Close()
	for {
		switch n, errno := it.Read(buf); {
		case errno == unix.EAGAIN || errno == unix.EINTR:
		case errno != 0:
			return fmt.Errorf("read an iterator of all tasks: %w", errno)
		case n == 0:
			return nil
		}
	}
}

// pinTo keeps the calling goroutine on one CPU.
func pinTo(cpu int) (undo func(), err error) {
	var was, now unix.CPUSet
	runtime.LockOSThread()
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	now.Set(cpu)
	if err := unix.SchedSetaffinity(0, &now); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("sched_setaffinity to CPU %d: %w", cpu, err)
	}
	return func() {
		if unix.SchedSetaffinity(0, &was) == nil { // else the thread ends with its goroutine
			runtime.UnlockOSThread()
		}
	}, nil
}
