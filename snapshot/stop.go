package snapshot

import (
	"context"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/workqueue"
)

// present are the workers that are at their park, pinned to their CPUs, and told
// whether they work. The main one is the first that can work and came to the last
// stop, on a P core if there is such. A throttled CPU leads, and works then,
// before one that may not come: without a main worker there is no stop.
func (m *team) present() (here, away []*worker) {
	m.leadWith(m.plan.Main)
	for _, w := range m.workers {
		w.away = w.away && w.through.Load() != w.called.Load()
		w.freed, w.refused = false, nil
		if !w.away {
			w.refused = w.pin()
		}
		if w.away || w.refused != nil {
			away = append(away, w)
		} else {
			w.works, w.spared = slices.Contains(m.plan.Work, w.cpu), m.plan.Spared(w.cpu)
			here = append(here, w)
		}
	}
	slices.SortStableFunc(here, func(a, b *worker) int { return a.reluctance() - b.reluctance() })
	if len(here) > 0 && here[0].spared {
		here[0].works = true
	}
	return here, away
}

// reluctance orders workers for the lead.
func (w *worker) reluctance() int {
	switch {
	case !w.works && !w.spared:
		return 4
	case w.late:
		return 3
	case w.spared:
		return 2
	case w.kind == workqueue.E:
		return 1
	}
	return 0
}

func anyAway(workers []*worker) bool {
	return slices.ContainsFunc(workers, func(w *worker) bool { return w.away })
}

// stop runs a try, with everything around it that a stop needs. missing are
// those of its workers whose CPU did not arrive.
func (m *team) stop(ctx context.Context, t *try) (missing []*worker, err error) {
	if err := m.watchSwitches(); err != nil {
		return nil, err
	}
	m.hooks.reach(stageAttach)
	m.quietGC()
	m.hooks.reach(stageQuiet)
	m.runUntil(ctx, t)
	if !m.anyAway() { // a worker that cannot run cannot stop for Go's own world either
		m.restoreGC()
	}
	m.stopWatching()
	m.objects.KeepAlive()
	for _, w := range t.here {
		if w.away || !w.stamp.in {
			missing = append(missing, w)
		}
	}
	t.noteLate()
	return missing, nil
}

// runUntil is run, ended early by the context. What the context sets off is over
// when it returns: the word that it writes to is the next try's, or unmapped, by
// then.
func (m *team) runUntil(ctx context.Context, t *try) {
	t.state.begin(len(t.here)) // or it would undo what the context has done
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		if h := m.hooks.cancelled; h != nil {
			h()
		}
		t.state.stopEarly()
		close(over)
	})
	m.run(t)
	if !stop() {
		<-over
	}
}

// waitSlack is what the coordinator, an ordinary thread, allows for being
// scheduled at all on a busy machine.
const waitSlack = 200 * time.Millisecond

// run stops the machine once, and returns when all workers are parked again or
// were given up.
func (m *team) run(t *try) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home := m.everywhere
	unix.SchedGetaffinity(0, &home)
	t.coordinator.Store(int32(unix.Gettid()))
	if h := m.hooks.beforeWake; h != nil {
		h()
	}
	wakeMain(t.here[0])
	m.await(t, &home)
}

func wakeMain(w *worker) { ring(w.wake) }

// await waits for the workers to say done. Whoever has not by the time the
// try must be over is un-pinned: it is starved behind somebody's real-time
// task, and free to run it leaves at once.
func (m *team) await(t *try, home *unix.CPUSet) {
	end := time.Now().Add(time.Duration(t.settle+t.arrivalBudget+t.pauseBudget) + waitSlack)
	left := m.collect(t, t.here, end, t.onlyMissing)
	if len(left) > 0 && t.missed != nil && t.onlyMissing(len(left)) {
		t.missed(cpusOf(left))
	}
	t.returnCoordinator(home)
	if len(m.collect(t, t.here, end, nil)) == 0 {
		return
	}
	t.state.expire()
	if t.shut = m.gate.shut(t.number); !t.shut {
		ring(m.gate.all) // main has opened it, and may not have come to ring
	}
	owing := t.owing()
	var kept unix.CPUSet
	for _, w := range owing {
		kept.Set(w.cpu)
	}
	free := without(&m.everywhere, &kept)
	if free.Count() == 0 {
		free = m.everywhere
	}
	for _, w := range owing {
		w.freed = true
		w.unpin(&free) // off that CPU at once
	}
	m.flight.flee(&kept)
	for _, w := range m.collect(t, owing, time.Now().Add(time.Second), nil) {
		w.away = true
	}
}

// collect waits for workers to be through with the try, at most to the deadline
// or until so few are left that it is enough; it returns those that are not. The
// eventfd only wakes: it may have been rung by one that comes loose from an
// earlier try.
func (m *team) collect(t *try, workers []*worker, deadline time.Time, enough func(left int) bool) []*worker {
	fds := []unix.PollFd{{Fd: int32(m.gate.done), Events: unix.POLLIN}}
	var b [8]byte
	for {
		left := t.notThrough(workers)
		rest := time.Until(deadline)
		if len(left) == 0 || rest <= 0 || enough != nil && enough(len(left)) {
			return left
		}
		unix.Poll(fds, int(rest.Milliseconds())+1)
		unix.Read(m.gate.done, b[:])
	}
}

func cpusOf(workers []*worker) (cpus []int) {
	for _, w := range workers {
		cpus = append(cpus, w.cpu)
	}
	return cpus
}
