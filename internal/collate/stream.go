package collate

import (
	"fmt"
	"io"

	"stackshot/internal/capture"
	"stackshot/internal/futex"
)

// stream is Write for a capture whose records are not in memory. Each task is loaded twice. The
// first time only what other tasks need is kept of it: who its threads are, and for whom they
// wait. The second time it is completed and written, so that memory is for one task at a time.
type stream struct {
	*collation
	index  *futex.Index
	listed []int // for each task the place of its first thread in the table; -1: it cannot be read
}

// writeStream is Write with Collator.Load.
func (x *collation) writeStream(out io.Writer) error {
	s := &stream{collation: x, index: x.waits.table.Index()}
	for parts := range x.c.Tasks() {
		s.survey(parts)
	}
	s.index.Look()
	if x.Surveyed != nil {
		x.Surveyed()
	}
	pre, err := x.preSection()
	if err != nil {
		return err
	}
	if _, err := out.Write(pre); err != nil {
		return err
	}
	i := 0
	for parts := range x.c.Tasks() {
		if s.listed[i] >= 0 {
			if err := s.one(out, parts, s.listed[i]); err != nil {
				return err
			}
		}
		i++
	}
	x.waits.end(x.c)
	x.files.settle(x.c)
	x.c.FinishCounts(false)
	return x.writePost(out)
}

func (s *stream) load(parts []capture.Part) (*taskBytes, error) {
	pieces, err := s.Load(parts)
	if err != nil {
		return nil, err
	}
	return openPieces(nil, parts, pieces)
}

// survey takes note of a task's threads and their waits.
func (s *stream) survey(parts []capture.Part) {
	s.listed = append(s.listed, -1)
	t, err := s.load(parts)
	if err != nil {
		s.unreadable(parts, err)
		return
	}
	s.listed[len(s.listed)-1] = s.waits.table.Len()
	one := s.waits.of(t, func(th *threadAt) int { return s.waits.table.Add(th.facts, th.ns) })
	for _, th := range one.threads {
		s.waits.want(s.index, one.tgid, th)
	}
	for i := range t.threads {
		if s.c.Hook != nil {
			s.names.hookPath(&t.threads[i])
		}
		s.c.NoteOnCPU(t.threads[i].onCPU, t.threads[i].facts.Tid, t.threads[i].facts.Tgid)
	}
}

// one completes a task and writes it. An error comes from out: a task that cannot be read any
// more is left out and named.
func (s *stream) one(out io.Writer, parts []capture.Part, listed int) error {
	t, err := s.load(parts)
	if err == nil {
		err = s.finishOne(t, listed)
	}
	if err != nil {
		s.unreadable(parts, err)
		return nil
	}
	if _, err := t.items.WriteTo(out); err != nil {
		return err
	}
	s.streamed, s.threads = s.streamed+1, s.threads+len(t.threads)
	return nil
}

func (s *stream) finishOne(t *taskBytes, at int) error {
	for i := range t.threads {
		if w := t.threads[i].user.Walk; w != nil {
			addUser(&s.user, w)
		}
	}
	if err := s.complete(t); err != nil {
		return err
	}
	one := s.waits.of(t, func(*threadAt) int { at++; return at - 1 })
	s.waits.drops(t)
	s.waits.task(s.index, &one)
	s.files.add(t)
	s.files.finish()
	return nil
}

// end is what is left of settle where the tasks were settled one by one.
func (w *waits) end(c *capture.Raw) {
	w.taken.Sources = c.WaitSources
	if w.bad > 0 {
		c.Warn("wait_damaged", fmt.Sprintf("%d records of waits could not be read, and are left out", w.bad))
	}
	w.tasks = nil
}

// of gives the waits of a task's threads. place gives the place in the table of a thread that can
// be named; it is called for each of these, in their order.
func (w *waits) of(t *taskBytes, place func(*threadAt) int) taskWaits {
	one := taskWaits{items: t.items, end: t.end, tgid: t.linux.Tgid}
	for i := range t.threads {
		th := &t.threads[i]
		at := -1
		if t.ownsFutexes(th) {
			at = place(th)
		}
		if !th.wait.IsZero() || !th.futexes.IsZero() {
			one.threads = append(one.threads, threadWait{at, th.id, th.wait, th.futexes})
		}
	}
	return one
}

// drops takes records of waits that cannot be read out of a task.
func (w *waits) drops(t *taskBytes) {
	w.bad += len(t.badWait)
	for _, p := range t.badWait {
		t.items.Remove(p)
	}
}
