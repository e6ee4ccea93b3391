package stop

import (
	"context"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/engine"
	"stackshot/workqueue"
)

// Present pins the parked workers to their CPUs and tells each whether it records in
// this try. here begins with the main worker: the first that may record and came to
// the last stop, on a P core if there is one. A throttled CPU leads, and then records,
// before a CPU that may not come: without a main worker there is no stop. away are the
// workers that have not come back to their park, or could not be pinned.
func (m *Team) Present() (here, away []*Worker) {
	m.leadWith(m.Plan.Main)
	for _, w := range m.Workers {
		w.Away = w.Away && w.Through.Load() != w.Called.Load()
		w.freed, w.refused = false, nil
		if !w.Away {
			w.refused = w.pin()
		}
		if w.Away || w.refused != nil {
			away = append(away, w)
		} else {
			w.Works, w.spared = slices.Contains(m.Plan.Work, w.CPU), m.Plan.Spared(w.CPU)
			here = append(here, w)
		}
	}
	slices.SortStableFunc(here, func(a, b *Worker) int { return a.reluctance() - b.reluctance() })
	if len(here) > 0 && here[0].spared {
		here[0].Works = true
	}
	return here, away
}

// reluctance orders workers by who should lead: the least reluctant becomes main.
func (w *Worker) reluctance() int {
	switch {
	case !w.Works && !w.spared:
		return 4
	case w.late:
		return 3
	case w.spared:
		return 2
	case w.Kind == workqueue.E:
		return 1
	}
	return 0
}

func anyAway(workers []*Worker) bool {
	return slices.ContainsFunc(workers, func(w *Worker) bool { return w.Away })
}

// Stop runs a try, with everything around it that a stop needs. missing are
// those of its workers whose CPU did not arrive.
func (m *Team) Stop(ctx context.Context, t *Try) (missing []*Worker, err error) {
	m.Hooks.Reach(engine.StagePrepare)
	if err := m.hook(); err != nil {
		return nil, err
	}
	m.Objects.Control.Armed = 1
	m.Hooks.Reach(engine.StageAttach)
	m.QuietGC()
	m.Hooks.Reach(engine.StageQuiet)
	m.runUntil(ctx, t)
	if !m.AnyAway() { // a worker that cannot run cannot stop for Go's own world either
		m.RestoreGC()
	}
	m.Objects.Control.Armed = 0
	if !m.Prompt {
		m.unhook()
	}
	m.Objects.KeepAlive()
	for _, w := range t.Here {
		if w.Away || !w.Stamp.In {
			missing = append(missing, w)
		}
	}
	t.noteLate()
	return missing, nil
}

// runUntil is run that the context can end early. It returns only when the context's
// callback is over too: the word to which the callback writes may later belong to the next
// try, or be unmapped.
func (m *Team) runUntil(ctx context.Context, t *Try) {
	t.State.Begin(len(t.Here)) // or it would undo what the context has done
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		if h := m.Hooks.Cancelled; h != nil {
			h()
		}
		t.State.stopEarly()
		close(over)
	})
	m.run(t)
	if !stop() {
		<-over
	}
}

// WaitSlack is how much longer the coordinator waits than the workers may take. It is an
// ordinary thread, and on a busy machine it may be scheduled late.
const WaitSlack = 200 * time.Millisecond

// run stops the machine once, and returns when all workers are parked again or
// were given up.
func (m *Team) run(t *Try) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home := m.everywhere
	unix.SchedGetaffinity(0, &home)
	t.coordinator.Store(int32(unix.Gettid()))
	if h := m.Hooks.BeforeWake; h != nil {
		h()
	}
	ring(t.Here[0].wake)
	m.await(t, &home)
}

// await waits until the workers are done. A worker that is not done when the try must be
// over is starved behind somebody's real-time task. It is un-pinned, so that it can run
// elsewhere; then it leaves at once.
func (m *Team) await(t *Try, home *unix.CPUSet) {
	end := time.Now().Add(time.Duration(t.settle+t.arrivalBudget+t.pauseBudget) + WaitSlack)
	left := m.collect(t, t.Here, end, t.onlyMissing)
	if len(left) > 0 && t.missed != nil && t.onlyMissing(len(left)) {
		t.missed(cpusOf(left))
	}
	t.returnCoordinator(home)
	if len(m.collect(t, t.Here, end, nil)) == 0 {
		return
	}
	t.State.Expire()
	if t.shut = m.Gate.shut(t.Number); !t.shut {
		ring(m.Gate.all) // main has opened it, and may not have come to ring
	}
	owing := t.owing()
	var kept unix.CPUSet
	for _, w := range owing {
		kept.Set(w.CPU)
	}
	free := without(&m.everywhere, &kept)
	if free.Count() == 0 {
		free = m.everywhere
	}
	for _, w := range owing {
		w.freed = true
		w.unpin(&free) // off that CPU at once
	}
	m.flight.Flee(&kept)
	for _, w := range m.collect(t, owing, time.Now().Add(time.Second), nil) {
		w.Away = true
	}
}

// collect waits until the workers are through with the try, at most to the deadline, or
// until enough says that few enough are left. It returns those that are not through. A
// ring of the eventfd says nothing of who is through: it may come from a worker of an
// earlier try that came loose.
func (m *Team) collect(t *Try, workers []*Worker, deadline time.Time, enough func(left int) bool) []*Worker {
	fds := []unix.PollFd{{Fd: int32(m.Gate.done), Events: unix.POLLIN}}
	var b [8]byte
	for {
		left := t.notThrough(workers)
		rest := time.Until(deadline)
		if len(left) == 0 || rest <= 0 || enough != nil && enough(len(left)) {
			return left
		}
		unix.Poll(fds, int(rest.Milliseconds())+1)
		unix.Read(m.Gate.done, b[:])
	}
}

func cpusOf(workers []*Worker) (cpus []int) {
	for _, w := range workers {
		cpus = append(cpus, w.CPU)
	}
	return cpus
}
