package snapshot

import (
	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// trapResult reads what the programs left behind.
func (e *trap) trapResult(t *try, team, missing []*worker) (*captured, error) {
	s := e.loaded.Stop
	t.seenTasks, t.seenThreads = int(s.SeenTasks), int(s.SeenThreads)
	e.level = e.heldLevel(team)
	c := &captured{
		engine: EngineTrap, isolation: e.level, seenTasks: t.seenTasks, seenThreads: t.seenThreads,
		ranShort: t.state.ranShort(), wholeCensus: s.CensusWhole != 0,
	}
	t.noteLate(team)
	e.parts(c, t, team)
	for _, w := range team {
		w.spill = e.loaded.Workers[w.cpu].Spill
	}
	c.second = e.secondOf(t, team)
	err := e.finishResult(c, t, team, missing)
	e.trapTraces(c, team)
	e.unwinding(c)
	return c, err
}

// heldLevel is the isolation that all who took part had.
func (e *trap) heldLevel(team []*worker) string {
	level := uint32(bpf.PreemptionOff | bpf.InterruptsOff)
	for _, w := range team {
		if w.stamp.in {
			level &= e.loaded.Workers[w.cpu].Level
		}
	}
	return e.levelOf(level)
}

// parts collects what came of each item. Of a task all of whose parts are not
// whole nothing is kept.
func (e *trap) parts(c *captured, t *try, team []*worker) {
	items := make([]workqueue.Item, 0, t.mem.queue.Pushed())
	broken := map[uint32]uint32{} // census index to why
	for it := range t.mem.queue.All() {
		part := &e.loaded.Parts[len(items)]
		items = append(items, it)
		if why := leftOut(part); why != 0 && broken[it.Index] == 0 {
			broken[it.Index] = why
		}
	}
	for n, it := range items {
		part := &e.loaded.Parts[n]
		if part.Worker == 0 {
			continue // nobody took it: it is still in the queue
		}
		if why := broken[it.Index]; why != 0 {
			c.failed = append(c.failed, failure{item: it, reason: why, errno: errnoOf(why)})
			continue
		}
		c.add(it, part.Threads, e.loaded.Stream(part), cost{
			int64(part.SetupNs), int64(part.HeadNs), int64(part.ThreadsNs), int64(part.EndNs),
		})
		if w := workerOf(team, int(part.Worker)-1); w != nil {
			w.parts = append(w.parts, worked(it, part))
			for piece := range e.loaded.Stream(part) {
				w.bytes += uint64(len(piece))
			}
		}
	}
}

func worked(it workqueue.Item, p *bpf.TrapPart) part { return part{item: it, threads: p.Threads} }

// leftOut is why a part is not whole; 0: it is.
func leftOut(p *bpf.TrapPart) uint32 {
	switch {
	case p.Worker == 0 || p.State == bpf.PartCut:
		return kcdata.LeftOutMaxPause
	case p.State == bpf.PartWhole:
		return 0
	case p.State == bpf.PartVanished:
		return kcdata.LeftOutVanished
	case p.State == bpf.PartNoRoom:
		return kcdata.LeftOutNoSpace
	}
	return kcdata.LeftOutError
}

func errnoOf(reason uint32) unix.Errno {
	switch reason {
	case kcdata.LeftOutNoSpace:
		return unix.ENOSPC
	case kcdata.LeftOutError:
		return unix.EIO
	}
	return 0
}

// secondOf reads what the second pass found: parts in which nothing ran as a
// whole, the others thread by thread.
func (e *trap) secondOf(t *try, team []*worker) *recheck {
	x := &recheck{method: kcdata.AtomicityInWindow, threads: map[uint32]activity{}, rest: restCounted}
	n := 0
	for it := range t.mem.queue.All() {
		part := &e.loaded.Parts[n]
		n++
		if part.State != bpf.PartWhole || it.Tgid == idleTask || uint32(it.Tgid) == t.self {
			continue
		}
		x.verdict(part)
	}
	known := min(int(e.loaded.Stop.Seconds), len(e.loaded.Seconds))
	for _, s := range e.loaded.Seconds[:known] {
		if e.loaded.Parts[s.Part].Verdict == bpf.PartChanged {
			x.threads[s.Tid] = activity{s.Switches, s.Runtime}
			x.gone--
		}
	}
	x.times(team)
	return x
}

func (x *recheck) verdict(p *bpf.TrapPart) {
	switch p.Verdict {
	case bpf.PartUnchanged:
		x.compared += p.Threads
	case bpf.PartChanged, bpf.PartGone:
		x.gone += p.Threads // less those in the list
	default:
		x.missed += p.Threads
	}
}

// unwinding adds what the programs measured with per-thread latency.
func (e *trap) unwinding(c *captured) {
	if e.options.Latency != LatencyThread {
		return
	}
	for i := range c.phases {
		p := &c.phases[i]
		p.UnwindNs = e.loaded.Workers[p.CPU].UnwindNs
		p.Present |= kcdata.PhasesHaveUnwind
	}
}
