package snapshot

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/bumpalloc"
	"stackshot/internal/procfs"
	"stackshot/internal/topology"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// procfsEngine reads everything from /proc, one goroutine per working CPU, and
// stops nothing: the oracle of the tests, and the last resort where BPF or the
// rights are missing. It draws from the same queues and writes into the same
// arenas as the engines that stop the machine.
type procfsEngine struct {
	proc    procfs.FS
	plan    *topology.Plan
	symbols *procfs.Kallsyms // nil: stacks stay without addresses
	redact  bool
	mem     *memory
}

// newProcfs is an engine that reads proc with one goroutine for each working CPU of
// the plan. symbols nil: stacks have no addresses.
func newProcfs(proc procfs.FS, plan *topology.Plan, symbols *procfs.Kallsyms, redact bool) *procfsEngine {
	return &procfsEngine{proc: proc, plan: plan, symbols: symbols, redact: redact}
}

func (e *procfsEngine) caps() caps         { return caps{name: engineProcfs, isolation: isolationNone} }
func (e *procfsEngine) release()           {}
func (e *procfsEngine) prepare(size) error { return nil } // its memory is the heap

func (e *procfsEngine) close() error {
	if e.mem != nil {
		e.mem.free()
		e.mem = nil
	}
	return nil
}

// reader is one goroutine's tally.
type reader struct {
	recording
	engine  *procfsEngine
	cpu     topology.CPU
	slot    int
	threads *procfs.ThreadReader
	task    []procfs.File
	queue   *workqueue.Queues
	stop    *stopping
}

// stopping tells all readers of a capture to take no further item.
type stopping struct{ noSpace, early atomic.Bool }

func (s *stopping) now() bool { return s.noSpace.Load() || s.early.Load() }

func (e *procfsEngine) capture(ctx context.Context, j job) (*captured, error) {
	if j.size = e.mem.atLeast(j.size); !e.mem.fits(j.size) {
		e.close()
		mem, err := newMemory(j.size)
		if err != nil {
			return nil, err
		}
		e.mem = mem
	}
	e.mem.reset()
	began := nanotime()
	stop := new(stopping)
	readers := e.readers(stop)
	defer context.AfterFunc(ctx, func() { stop.early.Store(true) })()
	c := &captured{engine: engineProcfs, isolation: isolationNone, wholeCensus: true}
	var wg sync.WaitGroup
	for _, r := range readers {
		wg.Go(r.drain)
	}
	err := e.census(c, j, stop)
	wg.Wait()
	if err != nil {
		return nil, err
	}
	e.gather(c, readers, stop)
	c.second = e.secondLook(ctx, readers, began)
	return c, nil
}

func (e *procfsEngine) readers(stop *stopping) []*reader {
	var out []*reader
	for i, id := range e.plan.Work {
		if i >= runtime.GOMAXPROCS(0) {
			break
		}
		cpu, _ := e.plan.Topology.CPU(id)
		r := &reader{engine: e, cpu: cpu, slot: i, stop: stop, queue: e.mem.queue}
		r.threads = procfs.NewThreadReader(e.proc, threadFiles)
		r.task = taskFiles()
		r.begin(e.mem, cpu.Cluster, 0)
		out = append(out, r)
	}
	return out
}

// census lists the tasks of /proc, ascending, while the others drain.
func (e *procfsEngine) census(c *captured, j job, stop *stopping) error {
	q := e.mem.queue
	defer q.Populated()
	push := func(tgid, threads int) bool {
		c.seenTasks++
		c.seenThreads += threads
		err := q.Push(workqueue.Item{Index: uint32(c.seenTasks - 1), Tgid: int32(tgid), Count: uint32(threads)})
		if err != nil {
			stop.noSpace.Store(true)
		}
		return err == nil
	}
	if j.pids != nil {
		for _, p := range j.pids {
			push(int(p.Tgid), int(p.Threads))
		}
		return nil
	}
	tgids, err := e.proc.Tasks()
	if err != nil {
		return err
	}
	for _, tgid := range tgids {
		if !push(tgid, 1) {
			break
		}
	}
	return nil
}

func (r *reader) drain() {
	kind := workqueue.Kind(r.cpu.Kind)
	forever := nanotime() + int64(time.Hour)
	for {
		it, status := r.queue.Next(r.slot, kind, r.stop.now, forever)
		if status != workqueue.Got {
			return
		}
		from, began := r.chain.Mark(), nanotime()
		threads, err := r.read(int(it.Tgid))
		if err == nil {
			r.keep(it, from, threads, cost{threads: nanotime() - began})
			continue
		}
		reason := uint32(kcdata.LeftOutError)
		switch {
		case gone(err):
			reason = kcdata.LeftOutVanished
		case errors.Is(err, kcdata.ErrNoSpace), errors.Is(err, bumpalloc.ErrNoSpace):
			reason = kcdata.LeftOutNoSpace
			r.stop.noSpace.Store(true)
		}
		var errno unix.Errno
		errors.As(err, &errno)
		r.fail(it, from, reason, errno)
	}
}

func (e *procfsEngine) gather(c *captured, readers []*reader, stop *stopping) {
	c.ranShort = stop.noSpace.Load()
	did := map[int]tally{}
	slots := map[int]int{}
	for _, r := range readers {
		did[r.cpu.ID], slots[r.cpu.ID] = r.end(c), r.slot
	}
	e.mem.notRecorded(c)
	e.mem.use(c)
	for _, cpu := range e.plan.Topology.CPUs {
		if !cpu.Online {
			continue
		}
		rec := kcdata.LinuxCPU{CPU: uint32(cpu.ID), Kind: uint32(cpu.Kind), Cluster: uint32(cpu.Cluster)}
		if d, ok := did[cpu.ID]; ok {
			rec.Flags = kcdata.CPUWorked
			d.into(&rec)
			rec.QueueNs = e.mem.queue.Waited(slots[cpu.ID])
		}
		c.cpus = append(c.cpus, rec)
	}
}

// record reads tasks that another engine did not see, one after the other, and adds
// them to its capture, behind the census. Their bytes are on the heap.
func (e *procfsEngine) record(c *captured, tgids []int) {
	r := &reader{engine: e, threads: procfs.NewThreadReader(e.proc, threadFiles), task: taskFiles()}
	r.chain = heapChain()
	for i, tgid := range tgids {
		from := r.chain.Mark()
		threads, err := r.read(tgid)
		it := workqueue.Item{Index: uint32(c.seenTasks + i), Tgid: int32(tgid), Count: threads}
		if err != nil {
			r.chain.Rewind(from)
			if !gone(err) {
				c.failed = append(c.failed, failure{item: it, reason: kcdata.LeftOutError})
			}
			continue
		}
		c.add(it, threads, slices.Collect(r.chain.Span(from, r.chain.Mark())), cost{})
		c.recorded[len(c.recorded)-1].hidden = true
	}
}
