package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stackshot/kcdata"
)

// Between two stops the machine runs at least this many times the last pause.
const restFactor = 10

// maxTries bounds the tries that fail for another reason than memory.
const maxTries = 3

// tries captures until everything fits, the largest buffer is full, or the
// pause budget is spent. One capture runs per machine.
func (s *Session) tries(ctx context.Context, sc scope) (*captured, error) {
	if s.engine.stops() {
		unlock, err := LockMachine(ctx, s.options.LockWait)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	s.hooks.reach(stageLock)
	j := job{pids: sc.pids, size: s.firstSize(sc), settle: settle}
	if sc.noSettle {
		j.settle = 0
	}
	began := nanotime()
	var early []asked
	j.missed = func(cpus []int) { early = append(early, s.ask(cpus)) }
	var stopped time.Duration
	var log tryLog
	var vain []kcdata.Warning
	for n := uint32(1); ; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		early, j.pause = nil, s.options.MaxPause-stopped
		c, err := s.engine.capture(ctx, j)
		log.note(c, err)
		var not *notStopped
		if errors.As(err, &not) && n < maxTries && stopped+not.held < s.options.MaxPause {
			stopped += not.held
			vain = append(vain, kcdata.Warning{Code: "stop_aborted", Text: fmt.Sprintf("try %d: %v", n, err)})
			log.rest(not.held)
			continue
		}
		if err != nil {
			return s.withoutStop(ctx, j, err)
		}
		last := time.Duration(c.capture.StoppedNs)
		stopped += last
		next, more := s.larger(j.size, c)
		if !more || stopped >= s.options.MaxPause {
			c.capture.Tries = n
			c.capture.StoppedNs = uint64(stopped)
			c.warnings = append(c.warnings, vain...)
			log.into(c)
			s.addSamples(c, began, early)
			return c, ctx.Err()
		}
		j.size = next
		log.rest(last)
	}
}

// tryLog is what became of each try.
type tryLog struct {
	tries []kcdata.LinuxTry
	trace []kcdata.LinuxTrace
}

func (l *tryLog) note(c *captured, err error) {
	if c == nil {
		return
	}
	k := &c.capture
	y := kcdata.LinuxTry{
		Outcome: kcdata.TryWhole, StoppedNs: k.StoppedNs, WindowNs: k.WindowNs, BufferSize: k.BufferSize, BufferUsed: k.BufferUsed,
	}
	switch {
	case err != nil:
		y.Outcome = kcdata.TryNotStopped
	case c.ranShort && c.queueFull:
		y.Outcome = kcdata.TryQueueFull
	case c.ranShort:
		y.Outcome = kcdata.TryNoSpace
	}
	l.tries = append(l.tries, y)
	l.trace = append(l.trace, c.trace...)
}

// rest lets the machine run.
func (l *tryLog) rest(last time.Duration) {
	began := time.Now()
	time.Sleep(min(restFactor*last, time.Second))
	if n := len(l.tries); n > 0 {
		l.tries[n-1].RestNs = uint64(time.Since(began))
	}
}

func (l *tryLog) into(c *captured) {
	c.tries, c.trace = l.tries, l.trace
}

// withoutStop is the way out of auto where the machine could not be stopped:
// the same picture from /proc, and the reason in a warning.
func (s *Session) withoutStop(ctx context.Context, j job, why error) (*captured, error) {
	if s.options.Engine != EngineAuto || !s.engine.stops() || ctx.Err() != nil {
		return nil, why
	}
	if s.fallback == nil {
		s.fallback = s.openProcfs()
	}
	began := nanotime()
	c, err := s.fallback.capture(ctx, j)
	if err != nil {
		return nil, errors.Join(why, err)
	}
	c.capture.Tries = 1
	s.addSamples(c, began, nil)
	c.warnings = append(c.warnings, kcdata.Warning{Code: "engine_procfs", Text: "nothing was stopped: " + why.Error()})
	return c, nil
}

func (s *Session) firstSize(sc scope) size {
	sz := estimate(sc.tasks, sc.threads, len(s.plan.Topology.Clusters), len(s.plan.Stop), s.plan.Topology.AMP)
	if s.options.Buffer != 0 {
		return sz.within(s.options.Buffer, len(s.plan.Stop))
	}
	sz.bytes = min(sz.bytes, s.options.MaxBuffer)
	return sz
}

// larger doubles what ran short. False: nothing did, or the maximum is reached.
func (s *Session) larger(sz size, c *captured) (size, bool) {
	if !c.ranShort {
		return sz, false
	}
	sz.bytes = max(sz.bytes, int64(c.capture.BufferSize)) // it was larger from an earlier capture
	if c.queueFull {
		sz.tasks = max(2*sz.tasks, c.seenTasks*5/4)
		return sz, true
	}
	if sz.bytes >= s.options.MaxBuffer {
		return sz, false
	}
	sz.bytes = min(2*sz.bytes, s.options.MaxBuffer)
	return sz, true
}
