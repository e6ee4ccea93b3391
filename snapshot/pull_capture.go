package snapshot

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"stackshot/workqueue"
)

// capture makes one try. The result refers to the engine's memory and holds
// until the next capture.
func (p *pull) capture(ctx context.Context, j job) (*captured, error) {
	team, away := p.present()
	if len(team) == 0 {
		return nil, errNobodyLeft
	}
	t, err := p.prepareTry(j, team)
	if err != nil {
		return nil, err
	}
	defer t.closeCensus()
	p.team.hooks.reach(stagePrepare)
	missing, err := p.stop(ctx, t, team)
	if err != nil {
		return nil, err
	}
	return p.result(t, team, append(missing, away...))
}

// stop runs a try, with everything around it that a stop needs.
func (p *pull) stop(ctx context.Context, t *try, team []*worker) (missing []*worker, err error) {
	if err := p.watchSwitches(); err != nil {
		return nil, err
	}
	p.team.hooks.reach(stageAttach)
	p.quiet()
	p.team.hooks.reach(stageQuiet)
	missing = p.runUntil(ctx, t, team)
	if !anyAway(p.workers) { // a worker that cannot run cannot stop for Go's own world either
		p.loud()
	}
	p.stopWatching()
	p.objects.KeepAlive()
	return missing, nil
}

// runUntil is run, ended early by the context. What the context sets off is over
// when it returns: the word that it writes to is the next try's, or unmapped, by
// then.
func (p *pull) runUntil(ctx context.Context, t *try, team []*worker) []*worker {
	t.state.begin(len(team)) // or it would undo what the context has done
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		if h := p.team.hooks.cancelled; h != nil {
			h()
		}
		t.state.stopEarly()
		close(over)
	})
	missing := p.run(t, team)
	if !stop() {
		<-over
	}
	return missing
}

func anyAway(team []*worker) bool {
	return slices.ContainsFunc(team, func(w *worker) bool { return w.away })
}

// present are the workers that are at their park, pinned to their CPUs, and told
// whether they work. The main one is the first that can work and came to the last
// stop, on a P core if there is such. A throttled CPU leads, and works then,
// before one that may not come: without a main worker there is no stop.
func (p *pull) present() (team, away []*worker) {
	p.leadWith(p.plan.Main)
	for _, w := range p.workers {
		w.away = w.away && w.through.Load() != w.called.Load()
		w.freed, w.refused = false, nil
		if !w.away {
			w.refused = w.pin()
		}
		if w.away || w.refused != nil {
			away = append(away, w)
		} else {
			w.works, w.spared = slices.Contains(p.plan.Work, w.cpu), p.plan.Spared(w.cpu)
			team = append(team, w)
		}
	}
	slices.SortStableFunc(team, func(a, b *worker) int { return a.reluctance() - b.reluctance() })
	if len(team) > 0 && team[0].spared {
		team[0].works = true
	}
	return team, away
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

// prepare maps, populates and locks memory for tries of this size.
func (p *pull) prepare(sz size) error { return p.fit(p.mem.atLeast(sz)) }

func (p *pull) prepareTry(j job, team []*worker) (*try, error) {
	j.size = p.mem.atLeast(j.size)
	if err := p.fit(j.size); err != nil {
		return nil, err
	}
	t := p.newTry(j, team)
	t.taskProg = p.objects.RecordTask.FD()
	if p.objects.RecordIdle != nil {
		t.idleProg = p.objects.RecordIdle.FD()
	}
	if p.objects.Recount != nil {
		t.recountProg = p.objects.Recount.FD()
	}
	return t, t.openCensus(p.objects.Census.FD())
}

// fit makes sure of memory for a try of this size. What a worker that is away
// may still write to is left to it.
func (p *pull) fit(sz size) error {
	if anyAway(p.workers) && p.mem != nil {
		p.orphans, p.mem = append(p.orphans, p.mem), nil
	}
	if p.mem.fits(sz) {
		return nil
	}
	if p.mem != nil {
		p.mem.free()
		p.mem = nil
	}
	var err error
	p.mem, err = newMemory(sz)
	return err
}

// newTry is a try over the engine's memory, given to the team.
func (p *pull) newTry(j job, team []*worker) *try {
	p.mem.reset()
	t := &try{
		number: p.team.begin(), mem: p.mem, size: j.size, workers: len(team), pids: j.pids,
		self: uint32(unix.Getpid()), taskProg: -1, idleProg: -1, recountProg: -1, slots: p.objects.Slots,
		latency:       latencyLevels[p.options.Latency],
		arrivalBudget: int64(min(p.options.ArrivalBudget, j.pause)), pauseBudget: int64(j.pause), settle: int64(j.settle), // who waits is held
		stopWords: new(stopWords), missed: j.missed,
	}
	t.stopTaking = func() bool { return !t.state.recording() }
	clear(p.objects.Slots)
	for _, w := range team {
		p.objects.Slots[w.cpu].WorkerTid = uint32(w.tid)
		w.assign(t)
	}
	p.objects.Control.BootEpochNs = bootEpoch()
	return t
}

// hook attaches the program that notes what each worker displaces. That takes
// 0.2 ms, and some ms where one was detached just before: the kernel waits for
// an RCU grace period between the two.
func (p *pull) hook() error {
	if p.objects.OnSwitch == nil || p.hooked != nil {
		return nil
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: p.objects.OnSwitch})
	if err != nil {
		return fmt.Errorf("attach to sched_switch: %w", err)
	}
	p.hooked = l
	return nil
}

func (p *pull) unhook() error {
	l := p.hooked
	p.hooked = nil
	if l == nil {
		return nil
	}
	return l.Close()
}

// watchSwitches arms the hook. It is armed only around the stop, and attached
// no longer than that unless the session is to be prompt.
func (p *pull) watchSwitches() error {
	if err := p.hook(); err != nil {
		return err
	}
	p.objects.Control.Armed = 1
	return nil
}

func (p *pull) stopWatching() {
	p.objects.Control.Armed = 0
	if !p.options.Prompt {
		p.unhook()
	}
}

// quiet keeps the Go collector off and lets a collection under way end, so that
// nothing asks the Go runtime to stop its own world while a worker cannot
// answer. SetGCPercent waits for the marking; what comes after it, a word from
// every P, ends before ReadMemStats may stop the world. A goroutine that had
// decided to collect just before, and has not begun, begins now: so it is looked
// again until a while has passed without.
func (p *pull) quiet() {
	if p.restore != nil {
		return
	}
	limit := debug.SetMemoryLimit(math.MaxInt64) // first, or it could begin one
	percent := debug.SetGCPercent(-1)
	var was, now runtime.MemStats
	runtime.ReadMemStats(&was)
	for range quietLooks {
		nap(quietNap)
		if runtime.ReadMemStats(&now); now.NumGC == was.NumGC {
			break
		}
		was = now
	}
	p.restore = func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	}
}

const (
	quietNap   = 100 * time.Microsecond
	quietLooks = 10
)

// loud puts the collector back.
func (p *pull) loud() {
	if p.restore != nil {
		p.restore()
		p.restore = nil
	}
}

func (p *pull) freeOrphans() {
	for _, m := range p.orphans {
		m.free()
	}
	p.orphans = nil
}
