package proc

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
	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/procfs"
	"stackshot/internal/topology"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// Engine is engine procfs. It takes items from queues and records into arenas, as the
// engines that stop the machine do.
type Engine struct {
	proc    procfs.FS
	plan    *topology.Plan
	symbols *procfs.Kallsyms // nil: stacks stay without addresses
	redact  bool
	mem     *engine.Memory

	userBytes int // of a user stack, at most; 0: none
}

// New is an engine that reads proc with one goroutine for each working CPU of
// the plan. symbols nil: stacks have no addresses.
func New(proc procfs.FS, plan *topology.Plan, symbols *procfs.Kallsyms, redact bool) *Engine {
	return &Engine{proc: proc, plan: plan, symbols: symbols, redact: redact}
}

func (e *Engine) Caps() engine.Caps {
	return engine.Caps{Name: capture.Procfs, Isolation: capture.None, UserStacks: e.userBytes > 0}
}
func (e *Engine) Release()                  {}
func (e *Engine) Prepare(engine.Size) error { return nil } // its memory is the heap

func (e *Engine) Close() error {
	e.mem.Free()
	e.mem = nil
	return nil
}

// reader is one goroutine of the engine, with what it recorded.
type reader struct {
	engine.Recording
	engine  *Engine
	cpu     topology.CPU
	slot    int
	threads *procfs.ThreadReader
	task    []procfs.File
	queue   *workqueue.Queues
	stop    *stopping
	user    *userSide            // nil: no user stacks
	look    *procfs.ThreadReader // with user: a second look at a thread
}

// stopping tells all readers of a capture to take no further item.
type stopping struct{ noSpace, early atomic.Bool }

func (s *stopping) now() bool { return s.noSpace.Load() || s.early.Load() }

func (e *Engine) Capture(ctx context.Context, j engine.Job) (*capture.Raw, error) {
	if j.Size = e.mem.AtLeast(j.Size); !e.mem.Fits(j.Size) {
		e.Close()
		mem, err := engine.NewMemory(j.Size)
		if err != nil {
			return nil, err
		}
		e.mem = mem
	}
	e.mem.Reset()
	began := clock.Nanotime()
	stop := new(stopping)
	readers := e.readers(stop)
	defer context.AfterFunc(ctx, func() { stop.early.Store(true) })()
	c := &capture.Raw{Engine: capture.Procfs, Isolation: capture.None, WholeCensus: true}
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
	readers[0].user.say(c)
	c.Second = e.secondPass(ctx, readers, began)
	return c, nil
}

func (e *Engine) readers(stop *stopping) []*reader {
	var out []*reader
	user := e.newUserSide()
	for i, id := range e.plan.Work {
		if i >= runtime.GOMAXPROCS(0) {
			break
		}
		cpu, _ := e.plan.Topology.CPU(id)
		r := &reader{engine: e, cpu: cpu, slot: i, stop: stop, queue: e.mem.Queue, user: user}
		r.threads = procfs.NewThreadReader(e.proc, threadFiles)
		r.task = taskFiles()
		r.look = procfs.NewThreadReader(e.proc, again)
		r.Begin(e.mem, cpu.Cluster, 0)
		out = append(out, r)
	}
	return out
}

// census puts the tasks of /proc into the queues, ascending, while the readers drain
// them.
func (e *Engine) census(c *capture.Raw, j engine.Job, stop *stopping) error {
	q := e.mem.Queue
	defer q.Populated()
	push := func(tgid, threads int) bool {
		c.SeenTasks++
		c.SeenThreads += threads
		err := q.Push(workqueue.Item{Index: uint32(c.SeenTasks - 1), Tgid: int32(tgid), Count: uint32(threads)})
		if err != nil {
			stop.noSpace.Store(true)
		}
		return err == nil
	}
	if j.Pids != nil {
		for _, p := range j.Pids {
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
	forever := clock.Nanotime() + int64(time.Hour)
	for {
		it, status := r.queue.Next(r.slot, kind, r.stop.now, forever)
		if status != workqueue.Got {
			return
		}
		from, began := r.Chain.Mark(), clock.Nanotime()
		threads, err := r.read(int(it.Tgid))
		if err == nil {
			r.Keep(it, from, threads, capture.Cost{Threads: clock.Nanotime() - began})
			continue
		}
		reason := uint32(kcdata.LeftOutError)
		switch {
		case procfs.Gone(err):
			reason = kcdata.LeftOutVanished
		case errors.Is(err, kcdata.ErrNoSpace), errors.Is(err, bumpalloc.ErrNoSpace):
			reason = kcdata.LeftOutNoSpace
			r.stop.noSpace.Store(true)
		}
		var errno unix.Errno
		errors.As(err, &errno)
		r.Fail(it, from, reason, errno)
	}
}

func (e *Engine) gather(c *capture.Raw, readers []*reader, stop *stopping) {
	c.RanShort = stop.noSpace.Load()
	did := map[int]engine.Tally{}
	slots := map[int]int{}
	for _, r := range readers {
		did[r.cpu.ID], slots[r.cpu.ID] = r.End(c), r.slot
	}
	e.mem.NotRecorded(c)
	e.mem.Use(c)
	for _, cpu := range e.plan.Topology.CPUs {
		if !cpu.Online {
			continue
		}
		rec := kcdata.LinuxCPU{CPU: uint32(cpu.ID), Kind: uint32(cpu.Kind), Cluster: uint32(cpu.Cluster)}
		if d, ok := did[cpu.ID]; ok {
			rec.Flags = kcdata.CPUWorked
			d.Into(&rec)
			rec.QueueNs = e.mem.Queue.Waited(slots[cpu.ID])
		}
		c.CPUs = append(c.CPUs, rec)
	}
}

// Record reads tasks that another engine did not see, one after the other. It adds
// them to that engine's capture, behind the census. Their bytes are on the heap.
func (e *Engine) Record(c *capture.Raw, tgids []int) {
	r := &reader{engine: e, threads: procfs.NewThreadReader(e.proc, threadFiles), task: taskFiles()}
	r.Chain = kcdata.NewChain(1<<16, func(least int) ([]byte, error) {
		return make([]byte, max(least, 64<<10)), nil
	}, func([]byte) {})
	for i, tgid := range tgids {
		from := r.Chain.Mark()
		threads, err := r.read(tgid)
		it := workqueue.Item{Index: uint32(c.SeenTasks + i), Tgid: int32(tgid), Count: threads}
		if err != nil {
			r.Chain.Rewind(from)
			if !procfs.Gone(err) {
				c.Failed = append(c.Failed, capture.Failure{Item: it, Reason: kcdata.LeftOutError})
			}
			continue
		}
		c.Add(it, threads, slices.Collect(r.Chain.Span(from, r.Chain.Mark())), capture.Cost{})
		c.Recorded[len(c.Recorded)-1].Hidden = true
	}
}
