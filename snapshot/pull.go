package snapshot

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/topology"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// pull is the engine in which the workers, Go threads at SCHED_FIFO 99 pinned
// to their CPUs, hold the machine and pull tasks from the queues themselves.
type pull struct {
	options    Options
	plan       *topology.Plan
	objects    *bpf.Objects
	team       *team
	workers    []*worker // the main one first
	level      string
	everywhere unix.CPUSet
	mem        *memory
	procs      int // GOMAXPROCS before Open
	probed     bool
}

func newPull(o Options, plan *topology.Plan, h hooks) (*pull, error) {
	objects, err := bpf.Load(bpf.Config{CPUs: possibleCPUs(plan), SelfTgid: uint32(unix.Getpid()), Redact: o.Redact})
	if err != nil {
		return nil, err
	}
	p := &pull{options: o, plan: plan, objects: objects, level: IsolationFIFO}
	if err := p.hire(h); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func possibleCPUs(plan *topology.Plan) int {
	most := 0
	for _, c := range plan.Topology.CPUs {
		most = max(most, c.ID)
	}
	return most + 1
}

// hire makes the workers: all of them, before any stop.
func (p *pull) hire(h hooks) error {
	var err error
	if err = unix.SchedGetaffinity(0, &p.everywhere); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	if p.team, err = newTeam(); err != nil {
		return err
	}
	p.team.hooks = h
	n := len(p.plan.Stop)
	// A worker that comes back from its park needs a free P at once.
	p.procs = runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 2*n+2))
	for _, cpu := range p.plan.Stop {
		w := p.newWorker(cpu)
		if err := w.start(p.level == IsolationFIFO); err != nil {
			return err
		}
		p.workers = append(p.workers, w)
		if w.fifo != nil {
			p.level = IsolationNone
		}
	}
	p.leadWith(p.plan.Main)
	return nil
}

func (p *pull) newWorker(cpu int) *worker {
	c, _ := p.plan.Topology.CPU(cpu)
	w := &worker{cpu: cpu, slot: len(p.workers), cluster: c.Cluster, kind: workqueue.Kind(c.Kind), team: p.team}
	if !p.plan.Topology.AMP {
		w.kind = workqueue.SMP
	}
	for _, id := range p.plan.Work {
		w.works = w.works || id == cpu
	}
	return w
}

// leadWith moves the worker of a CPU to the front: it is main.
func (p *pull) leadWith(cpu int) {
	for i, w := range p.workers {
		if w.cpu == cpu {
			p.workers[0], p.workers[i] = w, p.workers[0]
			return
		}
	}
}

func (p *pull) name() string      { return EnginePull }
func (p *pull) isolation() string { return p.level }
func (p *pull) stops() bool       { return true }

// fifoRefused is why the isolation is not fifo; nil if it is.
func (p *pull) fifoRefused() error {
	for _, w := range p.workers {
		if w.fifo != nil {
			return w.fifo
		}
	}
	return nil
}

// capture makes one try. The result refers to the engine's memory and holds
// until the next capture.
func (p *pull) capture(ctx context.Context, j job) (*captured, error) {
	team, away := p.present()
	if len(team) == 0 {
		return nil, errors.New("no worker is left: all are starved behind real-time tasks")
	}
	t, err := p.prepare(j, team)
	if err != nil {
		return nil, err
	}
	defer t.closeCensus()
	hook, err := p.watchSwitches()
	if err != nil {
		return nil, err
	}
	restore := quietRuntime()
	cancel := context.AfterFunc(ctx, t.state.stopEarly)
	missing := p.run(t, team)
	cancel()
	if !anyAway(team) { // a worker that cannot run cannot stop for Go's own world either
		restore()
	}
	p.stopWatching(hook)
	p.objects.KeepAlive()
	return p.result(t, team, append(missing, away...))
}

func anyAway(team []*worker) bool {
	return slices.ContainsFunc(team, func(w *worker) bool { return w.away })
}

// present are the workers that are at their park, pinned to their CPUs. The
// main one is the first that can work and came to the last stop.
func (p *pull) present() (team, away []*worker) {
	for _, w := range p.workers {
		w.away = w.away && !w.through.Load()
		if w.away || w.pin() != nil {
			away = append(away, w)
		} else {
			team = append(team, w)
		}
	}
	slices.SortStableFunc(team, func(a, b *worker) int { return a.reluctance() - b.reluctance() })
	return team, away
}

// reluctance orders workers for the lead.
func (w *worker) reluctance() int {
	switch {
	case !w.works:
		return 2
	case w.late:
		return 1
	}
	return 0
}

func (p *pull) prepare(j job, team []*worker) (*try, error) {
	if !p.mem.fits(j.size) {
		if p.mem != nil {
			p.mem.free()
			p.mem = nil
		}
		mem, err := newMemory(j.size)
		if err != nil {
			return nil, err
		}
		p.mem = mem
	}
	p.mem.reset()
	t := &try{
		mem: p.mem, size: j.size, workers: len(team), pids: j.pids,
		self: uint32(unix.Getpid()), taskProg: p.objects.RecordTask.FD(), idleProg: -1, slots: p.objects.Slots,
		arrivalBudget: int64(p.options.ArrivalBudget), pauseBudget: int64(j.pause),
	}
	if p.objects.RecordIdle != nil {
		t.idleProg = p.objects.RecordIdle.FD()
	}
	t.stopTaking = func() bool { return !t.state.recording() }
	if err := t.openCensus(p.objects.Census.FD()); err != nil {
		return nil, err
	}
	clear(p.objects.Slots)
	for _, w := range team {
		p.objects.Slots[w.cpu].WorkerTid = uint32(w.tid)
		w.assign(t)
	}
	p.objects.Control.BootEpochNs = bootEpoch()
	return t, nil
}

// watchSwitches attaches the program that notes what each worker displaces.
// It is on only around the stop.
func (p *pull) watchSwitches() (link.Link, error) {
	if p.objects.OnSwitch == nil {
		return nil, nil
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: p.objects.OnSwitch})
	if err != nil {
		return nil, fmt.Errorf("attach to sched_switch: %w", err)
	}
	p.objects.Control.Armed = 1
	return l, nil
}

func (p *pull) stopWatching(l link.Link) {
	p.objects.Control.Armed = 0
	if l != nil {
		l.Close()
	}
}

// quietRuntime finishes the Go collector and keeps it off, so that nothing
// asks the Go runtime to stop its own world while a worker cannot answer.
func quietRuntime() (restore func()) {
	runtime.GC()
	percent := debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(math.MaxInt64)
	return func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	}
}

// close lets the workers go and gives everything back. A worker that is away
// keeps its thread until the real-time task that starves it ends.
func (p *pull) close() error {
	if p.team != nil {
		p.team.closing.Store(true)
		for _, w := range p.workers {
			wakeMain(w)
		}
		p.awaitThreads()
		for _, w := range p.workers {
			unix.Close(w.wake)
		}
		p.team.close()
		runtime.GOMAXPROCS(p.procs)
	}
	if p.mem != nil {
		p.mem.free()
	}
	return p.objects.Close()
}

// awaitThreads waits until the workers' threads have ended, at most 1 s.
func (p *pull) awaitThreads() {
	deadline := time.Now().Add(time.Second)
	for _, w := range p.workers {
		w.unpin(&p.everywhere)
		for threadExists(w.tid) && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
	}
}

func threadExists(tid int) bool { return unix.Tgkill(unix.Getpid(), tid, 0) == nil }

// result reads what the workers left behind.
func (p *pull) result(t *try, team, missing []*worker) (*captured, error) {
	c := &captured{
		engine: p.name(), isolation: p.level, seenTasks: t.seenTasks, seenThreads: t.seenThreads,
		ranShort: t.state.ranShort(), censusErr: t.censusErr, wholeCensus: t.pids != nil || t.censusWhole,
	}
	for i, w := range team {
		woken := i == 0 || t.arriveBy.Load() != 0
		w.late = woken && (w.away || w.stamp.arrived == 0)
		if w.away { // its memory is still its own
			continue
		}
		c.failed = append(c.failed, w.failed...)
		for _, part := range w.parts {
			c.add(part.item, part.threads, w.chain.Span(part.from, part.to))
		}
		w.chain.Close()
	}
	c.untaken(t.mem.queue)
	c.times(team)
	p.describeCPUs(c, t, team, missing)
	c.memory(t.mem)
	if anyAway(team) {
		c.warn("worker_away", "a thread of ours is still starved by a real-time task")
	}
	if len(missing) == len(team) && t.state.phase() == phaseAborted {
		return c, fmt.Errorf("%w: no CPU arrived within %v", errNotStopped, p.options.ArrivalBudget)
	}
	return c, nil
}

// describeCPUs fills one record per online CPU.
func (p *pull) describeCPUs(c *captured, t *try, team, missing []*worker) {
	for _, cpu := range p.plan.Topology.CPUs {
		if !cpu.Online {
			continue
		}
		r := kcdata.LinuxCPU{CPU: uint32(cpu.ID), Kind: uint32(cpu.Kind), Cluster: uint32(cpu.Cluster)}
		if w := workerOf(team, cpu.ID); w != nil && w.stamp.in {
			w.describe(&r, t)
		} else if workerOf(missing, cpu.ID) != nil {
			r.Flags |= kcdata.CPUMissed
		} else {
			r.Flags |= kcdata.CPULeft
		}
		c.cpus = append(c.cpus, r)
	}
}

func workerOf(list []*worker, cpu int) *worker {
	for _, w := range list {
		if w.cpu == cpu {
			return w
		}
	}
	return nil
}

func (w *worker) describe(r *kcdata.LinuxCPU, t *try) {
	r.Flags |= kcdata.CPUStopped
	if w.works {
		r.Flags |= kcdata.CPUWorked
	}
	if w.stamp.main {
		r.Flags |= kcdata.CPUMain
	}
	slot := w.slotMem()
	r.NrRunning = slot.NrRunning
	if slot.NrRunning > 0 {
		r.NrRunning-- // our worker
	}
	if slot.RanKnown != 0 {
		r.Flags |= kcdata.CPURanKnown
		r.RanTid, r.RanTgid = slot.RanTid, slot.RanTgid
		if slot.RanTid == 0 {
			r.Flags |= kcdata.CPUIdle
		}
		r.RqClock, r.RqClockAt = slot.RqClock, slot.StopNs
	}
	r.ArriveNs, r.ReleaseNs = uint64(w.stamp.arrived), uint64(w.stamp.left)
	r.Switches = w.switches()
	for _, p := range w.parts {
		r.Tasks++
		r.Threads += p.threads
	}
	r.Bytes = uint64(w.chain.Len())
	r.SpillBytes = w.spill
	r.QueueNs = t.mem.queue.Waited(w.slot)
}
