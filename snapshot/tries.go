package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/engine/pull"
	"stackshot/internal/engine/stop"
	"stackshot/kcdata"
)

// Between two stops the machine runs this many times the last pause, at most 1 s.
const restFactor = 10

// maxTries bounds the tries that fail for another reason than memory.
const maxTries = 3

// capturing is one capture with all its tries.
type capturing struct {
	session *Session
	job     engine.Job
	began   int64         // CLOCK_MONOTONIC, ns
	count   uint32        // tries
	stopped time.Duration // by all of them
	tries   []kcdata.LinuxTry
	trace   []kcdata.LinuxTrace // of all tries
	notes   []kcdata.Warning    // no lock was taken; stops that were given up
	early   []asked             // samples of CPUs that missed the last stop, taken right after it
}

// tries captures until everything fits, the largest buffer is full, or the
// pause budget is spent. One capture runs per machine.
func (s *Session) tries(ctx context.Context, sc scope) (*capture.Raw, error) {
	a := &capturing{session: s}
	first := s.firstSize(sc)
	if s.engine.Caps().Stops {
		s.engine.Prepare(first) // before others wait for our lock; Capture meets an error again
		unlock, err := LockMachine(ctx, s.options.LockWait)
		switch {
		case err == nil:
			defer unlock()
		case errors.Is(err, ErrNoLock): // a capture without the lock is better than none
			a.notes = append(a.notes, kcdata.Warning{Code: "no_lock", Text: err.Error()})
		default:
			return nil, err
		}
	}
	s.hooks.Reach(engine.StageLock)
	a.began, a.job = clock.Nanotime(), engine.Job{Pids: sc.pids, Size: first, Settle: stop.Settle}
	if sc.noSettle {
		a.job.Settle = 0
	}
	a.job.Missed = func(cpus []int) { a.early = append(a.early, s.ask(cpus)) }
	c, err := a.with(ctx, s.engine)
	if err != nil {
		return a.stepDown(ctx, err)
	}
	return c, ctx.Err()
}

// with tries one engine. It repeats a stop that did not take place, up to maxTries in
// all, and a try that ran out of memory as long as there is more memory, within the
// pause budget. An engine that stops nothing has no such budget.
func (a *capturing) with(ctx context.Context, e engine.Engine) (*capture.Raw, error) {
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a.count++
		a.early, a.job.Pause = nil, a.session.options.MaxPause-a.stopped
		c, err := e.Capture(ctx, a.job)
		a.note(c, err)
		var not *engine.NotStopped
		if errors.As(err, &not) && a.inVain(not, n < maxTries) {
			continue
		}
		if err != nil {
			return nil, err
		}
		last := time.Duration(c.Capture.StoppedNs)
		a.stopped += last
		next, more := a.session.larger(a.job.Size, c)
		if !more || e.Caps().Stops && a.isLastChance(c, last) {
			a.finish(c)
			return c, nil
		}
		a.job.Size = next
		a.rest(last)
	}
}

// isLastChance reports whether what is left of the pause budget is no more than the last try
// took: another one begins anew, so it would record less than this one has.
func (a *capturing) isLastChance(c *capture.Raw, last time.Duration) bool {
	left := max(a.session.options.MaxPause-a.stopped, 0)
	if left > last {
		return false
	}
	c.Warn("no_second_try", fmt.Sprintf("the buffer was full after %v, and --max-pause leaves %v, too little to begin anew: what did not fit is left out",
		last.Round(time.Microsecond), left.Round(time.Microsecond)))
	return true
}

// inVain notes a stop that was given up; it reports whether there may be another.
func (a *capturing) inVain(not *engine.NotStopped, more bool) bool {
	a.stopped += not.Held
	a.notes = append(a.notes, kcdata.Warning{Code: "stop_aborted", Text: fmt.Sprintf("try %d: %v", a.count, not)})
	a.rest(not.Held)
	return more && a.stopped < a.session.options.MaxPause
}

func (a *capturing) finish(c *capture.Raw) {
	c.Capture.Tries = a.count
	c.Capture.StoppedNs = uint64(a.stopped)
	c.Warnings = append(c.Warnings, a.notes...)
	if why := a.session.resident.why; why != nil && c.Engine == EngineTrap {
		c.Warn("panic_not_told", "had the kernel panicked meanwhile, its CPUs would have been held for up to --max-pause, or this capture would not be in the dump: "+why.Error())
	}
	a.tell(c)
	a.session.addSamples(c, a.began, a.early)
}

// note writes down what became of a try.
func (a *capturing) note(c *capture.Raw, err error) {
	if c == nil {
		return
	}
	k := &c.Capture
	y := kcdata.LinuxTry{
		Outcome: kcdata.TryWhole, StoppedNs: k.StoppedNs, WindowNs: k.WindowNs, BufferSize: k.BufferSize, BufferUsed: k.BufferUsed,
	}
	switch {
	case err != nil:
		y.Outcome = kcdata.TryNotStopped
	case c.RanShort && c.QueueFull:
		y.Outcome = kcdata.TryQueueFull
	case c.RanShort:
		y.Outcome = kcdata.TryNoSpace
	}
	a.tries = append(a.tries, y)
	a.trace = append(a.trace, c.Trace...)
}

// rest lets the machine run for restFactor times the last pause, at most 1 s.
func (a *capturing) rest(last time.Duration) {
	began := time.Now()
	time.Sleep(min(restFactor*last, time.Second))
	if n := len(a.tries); n > 0 {
		a.tries[n-1].RestNs = uint64(time.Since(began))
	}
}

// tell puts what was noted into the capture, the events in order of time.
func (a *capturing) tell(c *capture.Raw) {
	slices.SortStableFunc(a.trace, func(a, b kcdata.LinuxTrace) int { return cmp.Compare(a.AtNs, b.AtNs) })
	c.Tries, c.Trace = a.tries, a.trace
}

// stepDown is for EngineAuto when its engine could not stop the machine: it captures
// with the next lesser one, and a warning gives the reason.
func (a *capturing) stepDown(ctx context.Context, why error) (*capture.Raw, error) {
	s := a.session
	if s.options.Engine != EngineAuto || !s.engine.Caps().Stops || ctx.Err() != nil || errors.Is(why, engine.ErrPanics) {
		return nil, why
	}
	if c, err := a.withPull(ctx); c != nil {
		c.Warn("engine_pull", "the machine is held by threads at SCHED_FIFO, not by the kernel itself: "+why.Error())
		c.Warnings = append(c.Warnings, s.lesser.Lacks()...)
		return c, err
	} else if err != nil {
		why = errors.Join(why, err)
	}
	if s.fallback == nil {
		s.fallback = s.openProcfs()
	}
	a.began = clock.Nanotime()
	c, err := a.with(ctx, s.fallback)
	if err != nil {
		return nil, errors.Join(why, err)
	}
	c.Capture.StoppedNs = 0 // of this picture
	c.Warn("engine_procfs", "nothing was stopped: "+why.Error())
	return c, nil
}

// withPull stops the machine by engine pull, if engine trap could not: in a virtual
// machine whose host takes CPUs away, all CPUs may never have their interrupts off at
// the same time. (nil, nil): pull is not possible here either.
func (a *capturing) withPull(ctx context.Context) (*capture.Raw, error) {
	s := a.session
	if s.engine.Caps().Name != EngineTrap || memoryPressure(s.machine) != "" || a.stopped >= s.options.MaxPause {
		return nil, nil
	}
	if s.lesser == nil && s.noLesser == nil {
		s.lesser, s.noLesser = pull.New(s.team)
	}
	if s.noLesser != nil {
		return nil, fmt.Errorf("engine pull: %w", s.noLesser)
	}
	return a.with(ctx, s.lesser)
}

// Prepare makes everything ready that a Take of r needs as the machine is now: it
// maps, populates and locks the memory. Without it the first Take does this. Errors: as Take.
func (s *Session) Prepare(r Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	sc, err := s.scope(r)
	if err != nil {
		return err
	}
	if err := s.engine.Prepare(s.firstSize(sc)); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return nil
}

func (s *Session) firstSize(sc scope) engine.Size {
	sz := engine.Estimate(sc.tasks, sc.threads, s.options.userEstimate(), len(s.plan.Topology.Clusters), len(s.plan.Stop), s.plan.Topology.AMP)
	if s.options.Buffer != 0 {
		return sz.Within(s.options.Buffer, len(s.plan.Stop))
	}
	sz.Bytes = min(sz.Bytes, s.options.MaxBuffer)
	return sz
}

// larger doubles what ran short. False: nothing did, or the maximum is reached.
func (s *Session) larger(sz engine.Size, c *capture.Raw) (engine.Size, bool) {
	if !c.RanShort {
		return sz, false
	}
	sz.Bytes = max(sz.Bytes, int64(c.Capture.BufferSize)) // it was larger from an earlier capture
	if c.QueueFull {
		sz.Tasks = max(2*sz.Tasks, c.SeenTasks*5/4)
		return sz, true
	}
	if sz.Bytes >= s.options.MaxBuffer {
		return sz, false
	}
	sz.Bytes = min(2*sz.Bytes, s.options.MaxBuffer)
	if why := s.noRoomFor(sz.Bytes); why != nil {
		c.Warn("little_memory", "what did not fit the buffer is left out: "+why.Error())
		return sz, false
	}
	return sz, true
}
