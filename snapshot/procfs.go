package snapshot

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

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

func (s *Session) openProcfs() *procfsEngine {
	return &procfsEngine{proc: s.proc, plan: s.plan, symbols: s.host.kallsyms, redact: s.options.Redact}
}

func (e *procfsEngine) name() string       { return EngineProcfs }
func (e *procfsEngine) isolation() string  { return IsolationNone }
func (e *procfsEngine) stops() bool        { return false }
func (e *procfsEngine) done()              {}
func (e *procfsEngine) prepare(size) error { return nil } // its memory is the heap

func (e *procfsEngine) close() error {
	if e.mem != nil {
		e.mem.free()
		e.mem = nil
	}
	return nil
}

// reader is one goroutine's share.
type reader struct {
	engine  *procfsEngine
	cpu     topology.CPU
	slot    int
	chain   *kcdata.Chain
	threads *procfs.ThreadReader
	task    []procfs.File
	parts   []part
	failed  []failure
	spill   uint64
	state   *stopState
	queue   *workqueue.Queues
}

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
	readers := e.readers()
	state := readers[0].state
	state.begin(1)
	state.arrive(true)
	defer context.AfterFunc(ctx, state.stopEarly)()
	c := &captured{engine: e.name(), isolation: e.isolation(), wholeCensus: true}
	var wg sync.WaitGroup
	for _, r := range readers {
		wg.Go(r.drain)
	}
	err := e.census(c, j, state)
	wg.Wait()
	if err != nil {
		return nil, err
	}
	e.gather(c, readers)
	c.second = e.secondLook(ctx, readers, began)
	return c, nil
}

func (e *procfsEngine) readers() []*reader {
	state := new(stopState)
	var out []*reader
	for i, id := range e.plan.Work {
		if i >= runtime.GOMAXPROCS(0) {
			break
		}
		cpu, _ := e.plan.Topology.CPU(id)
		r := &reader{engine: e, cpu: cpu, slot: i, state: state, queue: e.mem.queue}
		r.threads = procfs.NewThreadReader(e.proc, threadFiles)
		r.task = taskFiles()
		r.chain = e.mem.newChain(cpu.Cluster, &r.spill)
		out = append(out, r)
	}
	return out
}

// census lists the tasks of /proc, ascending, while the others drain.
func (e *procfsEngine) census(c *captured, j job, state *stopState) error {
	q := e.mem.queue
	defer q.Populated()
	push := func(tgid, threads int) bool {
		c.seenTasks++
		c.seenThreads += threads
		err := q.Push(workqueue.Item{Index: uint32(c.seenTasks - 1), Tgid: int32(tgid), Count: uint32(threads)})
		if err != nil {
			state.noSpace()
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
		it, status := r.queue.Next(r.slot, kind, func() bool { return !r.state.recording() }, forever)
		if status != workqueue.Got {
			return
		}
		from, began := r.chain.Mark(), nanotime()
		threads, err := r.record(int(it.Tgid))
		if err == nil {
			r.parts = append(r.parts, part{it, from, r.chain.Mark(), threads, cost{threads: nanotime() - began}})
			continue
		}
		r.chain.Rewind(from)
		f := failure{item: it, reason: kcdata.LeftOutError}
		switch {
		case gone(err):
			f.reason = kcdata.LeftOutVanished
		case errors.Is(err, kcdata.ErrNoSpace), errors.Is(err, bumpalloc.ErrNoSpace):
			f.reason = kcdata.LeftOutNoSpace
			r.state.noSpace()
		}
		errors.As(err, &f.errno)
		r.failed = append(r.failed, f)
	}
}

func (e *procfsEngine) gather(c *captured, readers []*reader) {
	c.ranShort = readers[0].state.ranShort()
	c.queueFull = e.mem.queue.Refused() > 0
	by := map[int]*reader{}
	for _, r := range readers {
		by[r.cpu.ID] = r
		c.failed = append(c.failed, r.failed...)
		for _, p := range r.parts {
			c.add(p.item, p.threads, r.chain.Span(p.from, p.to), p.cost)
		}
		r.chain.Close()
	}
	c.untaken(e.mem.queue)
	c.memory(e.mem)
	for _, cpu := range e.plan.Topology.CPUs {
		if !cpu.Online {
			continue
		}
		rec := kcdata.LinuxCPU{CPU: uint32(cpu.ID), Kind: uint32(cpu.Kind), Cluster: uint32(cpu.Cluster)}
		if r := by[cpu.ID]; r != nil {
			rec.Flags = kcdata.CPUWorked
			rec.Bytes = uint64(r.chain.Len())
			rec.SpillBytes = r.spill
			rec.QueueNs = e.mem.queue.Waited(r.slot)
			for _, p := range r.parts {
				rec.Tasks++
				rec.Threads += p.threads
			}
		}
		c.cpus = append(c.cpus, rec)
	}
}
