package snapshot

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// team is all that the engines that stop the machine share: the loaded programs,
// one worker for each CPU that is to be stopped, and the way of a stop. The
// coordinator owns it.
type team struct {
	config
	objects    *bpf.Objects
	gate       *gate
	workers    []*worker // the main one first
	level      string    // isolation by the workers' priority
	everywhere unix.CPUSet
	flight     flight
	collector  func()    // puts the Go collector back; nil while it is as it was
	hooked     link.Link // of the switch hook; nil while it is not attached
}

// newTeam loads the programs and starts the workers: all of them, before any stop.
// Errors: bpf.ErrUnsupported.
func newTeam(c config) (*team, error) {
	objects, err := bpf.Load(c.bpf)
	if err != nil {
		return nil, err
	}
	m := &team{config: c, objects: objects, level: isolationFIFO}
	err = errors.Join(checkClock(objects), m.startWorkers())
	if err == nil && c.prompt {
		err = m.hook()
	}
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *team) startWorkers() error {
	var err error
	if err = unix.SchedGetaffinity(0, &m.everywhere); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	if m.gate, err = newGate(); err != nil {
		return err
	}
	m.gate.hooks = m.hooks
	raiseProcessors(len(m.plan.Stop))
	for _, cpu := range m.plan.Stop {
		w := m.newWorker(cpu)
		if err := w.start(m.level == isolationFIFO); err != nil {
			return err
		}
		w.perf, _ = openCounters(w.tid) // most virtual machines have none
		m.workers = append(m.workers, w)
		if w.fifo != nil {
			m.level = isolationNone
		}
	}
	m.leadWith(m.plan.Main)
	return nil
}

func (m *team) newWorker(cpu int) *worker {
	c, _ := m.plan.Topology.CPU(cpu)
	w := &worker{cpu: cpu, slot: len(m.workers), cluster: c.Cluster, kind: workqueue.Kind(c.Kind), gate: m.gate}
	if !m.plan.Topology.AMP {
		w.kind = workqueue.SMP
	}
	return w
}

// leadWith moves the worker of a CPU to the front: it is main.
func (m *team) leadWith(cpu int) {
	for i, w := range m.workers {
		if w.cpu == cpu {
			m.workers[0], m.workers[i] = w, m.workers[0]
			return
		}
	}
}

// close ends the team. Once the workers have ended it gives everything back. Else
// a worker that is away keeps its thread, and what it may still write to, until
// the real-time task that starves it ends.
func (m *team) close() error {
	if !m.stopWorkers() {
		return nil
	}
	return errors.Join(m.unhook(), m.objects.Close())
}

// release lets this process's threads back to the CPUs that they fled from.
func (m *team) release() { m.flight.comeBack() }

// stopWorkers ends the workers. False: one of them has not ended. It may be unable
// to stop for Go's own world, or still come to its turn.
func (m *team) stopWorkers() (ended bool) {
	if m.gate == nil {
		return true
	}
	m.gate.closing.Store(true)
	for _, w := range m.workers {
		wakeMain(w)
	}
	if !m.awaitThreads() {
		return false
	}
	for _, w := range m.workers {
		unix.Close(w.wake)
		unix.Close(w.bell)
		w.perf.close()
	}
	m.gate.close()
	m.gate = nil
	m.flight.comeBack()
	m.restoreGC()
	restoreProcessors()
	return true
}

// awaitThreads waits until the workers' threads have ended, at most 1 s; it
// reports whether all have.
func (m *team) awaitThreads() (ended bool) {
	deadline := time.Now().Add(time.Second)
	ended = true
	for _, w := range m.workers {
		w.unpin(&m.everywhere)
		for threadExists(w.tid) && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		ended = ended && !threadExists(w.tid)
	}
	return ended
}

func threadExists(tid int) bool { return unix.Tgkill(unix.Getpid(), tid, 0) == nil }

// anyAway reports whether a worker has not come back to its park.
func (m *team) anyAway() bool { return anyAway(m.workers) }

// fifoRefused is why the isolation is not fifo; nil if it is.
func (m *team) fifoRefused() error {
	for _, w := range m.workers {
		if w.fifo != nil {
			return w.fifo
		}
	}
	return nil
}

// lacks says what the programs cannot do here, as warnings for every file.
func (m *team) lacks() (list []kcdata.Warning) {
	for _, m := range m.objects.Missing {
		list = append(list, kcdata.Warning{Code: "program_missing", Text: "this kernel refuses the BPF program " + m.Program + ": " + m.Why.Error()})
	}
	if m.userWhy != nil {
		list = append(list, kcdata.Warning{Code: "user_stacks_off", Text: "no user stacks are recorded: " + m.userWhy.Error()})
	}
	return list
}
