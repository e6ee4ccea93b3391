package stop

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/engine"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// Team is all that the engines that stop the machine share: the loaded programs,
// one worker for each CPU that is to be stopped, and the way of a stop. The
// coordinator owns it.
type Team struct {
	engine.Config
	Objects    *bpf.Objects
	Gate       *Gate
	Workers    []*Worker // the main one first
	Level      string    // isolation by the workers' priority
	everywhere unix.CPUSet
	flight     Flight
	endBy      time.Time // of the workers' threads; by the first StopWorkers
	lost       bool      // one had not ended by then: whoever asks hears the same
	collector  func()    // puts the Go collector back; nil while it is as it was
	Hooked     link.Link // of the switch hook; nil while it is not attached
}

// NewTeam loads the programs and starts the workers: all of them, before any stop.
// Errors: bpf.ErrUnsupported.
func NewTeam(c engine.Config) (*Team, error) {
	objects, err := bpf.Load(c.Bpf)
	if err != nil {
		return nil, err
	}
	m := &Team{Config: c, Objects: objects, Level: capture.FIFO}
	err = errors.Join(checkClock(objects), m.startWorkers())
	if err == nil && c.Prompt {
		err = m.hook()
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *Team) startWorkers() error {
	var err error
	if err = unix.SchedGetaffinity(0, &m.everywhere); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	if m.Gate, err = newGate(); err != nil {
		return err
	}
	m.Gate.Hooks = m.Hooks
	raiseProcessors(len(m.Plan.Stop))
	for _, cpu := range m.Plan.Stop {
		w := m.newWorker(cpu)
		if err := w.start(m.Level == capture.FIFO); err != nil {
			return err
		}
		w.perf, _ = openCounters(w.Tid) // most virtual machines have none
		m.Workers = append(m.Workers, w)
		if w.fifo != nil {
			m.Level = capture.None
		}
	}
	m.leadWith(m.Plan.Main)
	return nil
}

func (m *Team) newWorker(cpu int) *Worker {
	c, _ := m.Plan.Topology.CPU(cpu)
	w := &Worker{CPU: cpu, Slot: len(m.Workers), Cluster: c.Cluster, Kind: workqueue.Kind(c.Kind), Gate: m.Gate}
	if !m.Plan.Topology.AMP {
		w.Kind = workqueue.SMP
	}
	return w
}

// leadWith moves the worker of a CPU to the front: it is main.
func (m *Team) leadWith(cpu int) {
	for i, w := range m.Workers {
		if w.CPU == cpu {
			m.Workers[0], m.Workers[i] = w, m.Workers[0]
			return
		}
	}
}

// Close ends the team. If all workers have ended it gives everything back. Else a
// worker that is away keeps its thread, and what it may still write to, until the
// real-time task that starves it ends.
func (m *Team) Close() error {
	if !m.StopWorkers() {
		return nil
	}
	return errors.Join(m.unhook(), m.Objects.Close())
}

// Release lets this process's threads back to the CPUs that they fled from.
func (m *Team) Release() { m.flight.ComeBack() }

// StopWorkers ends the workers. False: one of them has not ended. Such a worker may be
// unable to stop when Go stops its world, and it may still come to its turn.
func (m *Team) StopWorkers() (ended bool) {
	if m.Gate == nil {
		return true
	}
	if !m.Gate.closing.Swap(true) {
		m.endBy = time.Now().Add(time.Second)
	}
	for _, w := range m.Workers {
		ring(w.wake)
	}
	if m.lost = m.lost || !m.awaitThreads(); m.lost {
		return false
	}
	for _, w := range m.Workers {
		unix.Close(w.wake)
		unix.Close(w.bell)
		w.perf.close()
	}
	m.Gate.close()
	m.Gate = nil
	m.flight.ComeBack()
	m.RestoreGC()
	restoreProcessors()
	return true
}

// awaitThreads waits until the workers' threads have ended, at most 1 s whoever asks
// and how often; it reports whether all have.
func (m *Team) awaitThreads() (ended bool) {
	ended = true
	for _, w := range m.Workers {
		w.unpin(&m.everywhere)
		for ThreadExists(w.Tid) && time.Now().Before(m.endBy) {
			time.Sleep(time.Millisecond)
		}
		ended = ended && !ThreadExists(w.Tid)
	}
	return ended
}

func ThreadExists(tid int) bool { return unix.Tgkill(unix.Getpid(), tid, 0) == nil }

// AnyAway reports whether a worker has not come back to its park.
func (m *Team) AnyAway() bool { return anyAway(m.Workers) }

// Caps is what an engine over this team can do at that isolation. Without SCHED_FIFO a
// worker waits for its CPU like any thread. Once there, under engine trap, it still holds
// the CPU if the kernel can turn preemption off.
func (m *Team) Caps(name, isolation string) engine.Caps {
	c := engine.Caps{Name: name, Isolation: isolation, Stops: true, UserStacks: m.UserWhy == nil, Objects: m.Objects, Warnings: m.lacks()}
	for _, w := range m.Workers {
		if w.fifo == nil {
			continue
		}
		v := kcdata.Warning{Code: "fifo_refused", Text: "a busy CPU may come late to the stop and be left out: " + w.fifo.Error()}
		if isolation == capture.None {
			v = kcdata.Warning{Code: "isolation_none", Text: "other tasks ran during the capture: " + w.fifo.Error()}
		}
		c.Warnings = append(c.Warnings, v)
		break // the others were not asked for, or say the same
	}
	return c
}

// lacks says what the programs cannot do here, as warnings for every file.
func (m *Team) lacks() (list []kcdata.Warning) {
	list = engine.ProgramsMissing(m.Objects.Missing)
	if m.UserWhy != nil {
		list = append(list, kcdata.Warning{Code: "user_stacks_off", Text: "no user stacks are recorded: " + m.UserWhy.Error()})
	}
	return list
}
