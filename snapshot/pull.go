package snapshot

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/timens"
	"stackshot/internal/topology"
	"stackshot/workqueue"
)

// pull is the engine in which the workers, Go threads at SCHED_FIFO 99 pinned
// to their CPUs, hold the machine and pull tasks from the queues themselves.
type pull struct {
	options    Options
	plan       *topology.Plan
	objects    *bpf.Objects
	config     bpf.Config // what they were loaded with
	userWhy    error      // why there are no user stacks; nil: there are, or none were wanted
	team       *team
	workers    []*worker // the main one first
	level      string
	everywhere unix.CPUSet
	mem        *memory
	orphans    []*memory // still in the hands of workers that are away
	flight     flight
	restore    func()    // puts the Go collector back; nil while it is as it was
	hooked     link.Link // of the switch hook; nil while it is not attached
}

func newPull(o Options, plan *topology.Plan, h hooks) (*pull, error) {
	user, why := o.userTaking(h.findDirectMap())
	cfg := bpf.Config{
		CPUs: possibleCPUs(plan), SelfTgid: uint32(unix.Getpid()), Redact: o.Redact, Latency: latencyLevels[o.Latency], User: user,
		Specs: h.specs,
	}
	objects, err := bpf.Load(cfg)
	if err != nil {
		return nil, err
	}
	p := &pull{options: o, plan: plan, objects: objects, config: cfg, userWhy: why, level: IsolationFIFO}
	err = errors.Join(checkClock(p.objects), p.hire(h))
	if err == nil && o.Prompt {
		err = p.hook()
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// clockSlack is more than the clock that programs may read from an NMI too can be
// behind, or ahead of, CLOCK_MONOTONIC (ktime_get_mono_fast_ns,
// kernel/time/timekeeping.c).
const clockSlack = int64(time.Millisecond)

// checkClock holds the clock that deadlines are written in against the one that
// they are read in. Where they differ no stop would end when it should.
func checkClock(o *bpf.Objects) error {
	from := now()
	if err := probeCensus(o); err != nil {
		return err
	}
	to := now()
	for _, c := range []struct {
		name             string
		from, kernel, to uint64
		offset           int64
	}{
		{"CLOCK_MONOTONIC", from.monotonic, o.Control.KtimeNs, to.monotonic, timens.Monotonic},
		{"CLOCK_BOOTTIME", from.boottime, o.Control.BootNs, to.boottime, timens.Boottime},
	} {
		if int64(c.kernel-c.from) < -clockSlack || int64(c.kernel-c.to) > clockSlack {
			return fmt.Errorf("%w: this process's %s is not the kernel's: %v ahead of it, of which a time namespace (/proc/self/timens_offsets) explains %v",
				bpf.ErrUnsupported, c.name, time.Duration(int64(c.to-c.kernel)+c.offset), time.Duration(c.offset))
		}
	}
	return nil
}

// probeCensus runs the census over this process alone: it shows that iterators
// work, and leaves the depth of our pid namespace for the switch hook and the
// samples.
func probeCensus(o *bpf.Objects) error {
	var pass bpf.Iterator
	scope := bpf.TaskScope(uint32(unix.Getpid()))
	if errno := pass.Open(o.Census.FD(), &scope); errno != 0 {
		return fmt.Errorf("%w: task iterator: %w", bpf.ErrUnsupported, errno)
	}
	defer pass.Close()
	var e [bpf.CensusEntrySize]byte
	if n, errno := pass.Read(e[:]); errno != 0 || n != len(e) {
		return fmt.Errorf("%w: task iterator: %d bytes for this process, %v", bpf.ErrUnsupported, n, errno)
	}
	return nil
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
	raiseProcessors(len(p.plan.Stop))
	for _, cpu := range p.plan.Stop {
		w := p.newWorker(cpu)
		if err := w.start(p.level == IsolationFIFO); err != nil {
			return err
		}
		w.perf, _ = openCounters(w.tid) // most virtual machines have none
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

// close lets the workers go and gives everything back, but what a worker that
// is away may still write to: it keeps its thread, and that, until the real-time
// task that starves it ends.
func (p *pull) close() error {
	if !p.dismiss() {
		return nil
	}
	p.freeOrphans()
	if p.mem != nil {
		p.mem.free()
	}
	return errors.Join(p.unhook(), p.objects.Close())
}

// done lets this process's threads back to the CPUs that they fled from.
func (p *pull) done() { p.flight.comeBack() }

// dismiss ends the workers. False: one of them may be unable to stop for Go's
// own world, or still comes to its turn.
func (p *pull) dismiss() (ended bool) {
	if p.team == nil {
		return true
	}
	p.team.closing.Store(true)
	for _, w := range p.workers {
		wakeMain(w)
	}
	if !p.awaitThreads() {
		return false
	}
	for _, w := range p.workers {
		unix.Close(w.wake)
		unix.Close(w.bell)
		w.perf.close()
	}
	p.team.close()
	p.team = nil
	p.flight.comeBack()
	p.loud()
	restoreProcessors()
	return true
}

// awaitThreads waits until the workers' threads have ended, at most 1 s; it
// reports whether all have.
func (p *pull) awaitThreads() (ended bool) {
	deadline := time.Now().Add(time.Second)
	ended = true
	for _, w := range p.workers {
		w.unpin(&p.everywhere)
		for threadExists(w.tid) && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		ended = ended && !threadExists(w.tid)
	}
	return ended
}

func threadExists(tid int) bool { return unix.Tgkill(unix.Getpid(), tid, 0) == nil }
