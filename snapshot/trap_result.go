package snapshot

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// result reads what the programs left behind.
func (e *trap) result(t *trapTry, missing []*worker) (*captured, error) {
	s := e.loaded.Stop
	c := &captured{
		engine: engineTrap, isolation: e.heldLevel(t), seenTasks: int(s.SeenTasks), seenThreads: int(s.SeenThreads),
		ranShort: t.state.ranShort(), wholeCensus: s.CensusWhole != 0,
	}
	e.parts(c, t)
	for _, w := range t.here {
		w.did.spill = e.loaded.Workers[w.cpu].Spill
	}
	c.second = e.second(t)
	err := e.team.describe(c, t.try, e.mem, missing)
	e.traces(c, t)
	e.unwinding(c)
	return c, err
}

// unheld names a CPU that was part of the stop and did not have its interrupts off
// in time.
func (t *trapTry) unheld() string {
	var first int64
	var last *worker
	off := func(w *worker) int64 { return t.loaded.Workers[w.cpu].Off }
	for _, w := range t.here {
		if off(w) != 0 {
			first = earlier(first, off(w))
		}
		if w.stamp.arrived != 0 && (last == nil || off(w) == 0 || off(last) != 0 && off(w) > off(last)) {
			last = w
		}
	}
	if first == 0 {
		return ""
	}
	return fmt.Sprintf("CPU %d was counted in and did not hold still %v after another did", last.cpu, time.Duration(t.loaded.Stop.HoldNs))
}

// heldLevel is the isolation that all who took part had.
func (e *trap) heldLevel(t *trapTry) string {
	level := uint32(bpf.PreemptionOff | bpf.InterruptsOff)
	for _, w := range t.here {
		if w.stamp.in {
			level &= e.loaded.Workers[w.cpu].Level
		}
	}
	return e.levelOf(level)
}

// fate is what came of one task, of all its parts.
type fate struct {
	why          uint32 // it is left out; 0: it is not
	gaps         bool   // the thread that a part began at was gone
	opened, ends bool   // by its whole parts: has the container's begin, its end
	last         int    // number of its last whole part
}

// fates are by census index. A thread that a part begins at can end before the
// part is recorded, where a CPU was left running: what the other parts have of
// the task is kept. For any other reason nothing of it is.
func (e *trap) fates(items []workqueue.Item) map[uint32]*fate {
	out := map[uint32]*fate{}
	for n, it := range items {
		f, part := out[it.Index], &e.loaded.Parts[n]
		if f == nil {
			f = new(fate)
			out[it.Index] = f
		}
		switch why := leftOut(part); {
		case why == kcdata.LeftOutVanished:
			f.gaps = true
		case why != 0 && f.why == 0:
			f.why = why
		case why == 0:
			f.opened = f.opened || part.Flags&bpf.PartOpened != 0
			f.ends = f.ends || part.Flags&bpf.PartClosed != 0
			f.last = n
		}
	}
	for _, f := range out {
		if f.why == 0 && f.gaps && !f.opened {
			f.why = kcdata.LeftOutVanished
		}
	}
	return out
}

// failure is a part that is not in the file. Where the thread that it begins at is
// gone and the task is not, the part's other threads may live: they are missed.
func (f *fate) failure(it workqueue.Item, why uint32) failure {
	if why == kcdata.LeftOutVanished && f.why == 0 && f.opened {
		return failure{item: it, reason: kcdata.LeftOutError, errno: unix.ESRCH}
	}
	return failure{item: it, reason: why, errno: errnoOf(why)}
}

// parts collects what came of each item.
func (e *trap) parts(c *captured, t *trapTry) {
	items := slices.Collect(e.mem.queue.All())
	fates := e.fates(items)
	for n, it := range items {
		part, f := &e.loaded.Parts[n], fates[it.Index]
		if part.Worker == 0 {
			continue // nobody took it: it is still in the queue
		}
		why := f.why
		if why == 0 {
			why = leftOut(part)
		}
		if why != 0 {
			c.failed = append(c.failed, f.failure(it, why))
			continue
		}
		pieces := slices.Collect(e.loaded.Stream(part))
		if w := workerOf(t.here, int(part.Worker)-1); w != nil {
			w.did.add(part.Threads, sizeOfPieces(pieces))
		}
		if f.gaps && !f.ends && n == f.last {
			pieces = append(pieces, endOf(uint64(it.Tgid)))
		}
		c.add(it, part.Threads, pieces, cost{
			int64(part.SetupNs), int64(part.HeadNs), int64(part.ThreadsNs), int64(part.EndNs),
		})
	}
}

func sizeOfPieces(pieces [][]byte) (n uint64) {
	for _, p := range pieces {
		n += uint64(len(p))
	}
	return n
}

// endOf closes a task's container, whose last part is gone.
func endOf(id uint64) []byte {
	w := kcdata.NewWriter(make([]byte, 64))
	if err := w.EndContainer(id); err != nil {
		panic(err) // 64 bytes hold a header
	}
	return w.Written()
}

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

// second reads what the second pass found: parts in which nothing ran as a
// whole, the others thread by thread.
func (e *trap) second(t *trapTry) *recheck {
	x := &recheck{method: kcdata.AtomicityInWindow, threads: map[uint32]activity{}, rest: restCounted}
	n := 0
	for it := range e.mem.queue.All() {
		part := &e.loaded.Parts[n]
		n++
		if part.State != bpf.PartWhole || it.Tgid == idleTask || uint32(it.Tgid) == t.self {
			continue
		}
		verdict(x, part)
	}
	known := min(int(e.loaded.Stop.Seconds), len(e.loaded.Seconds))
	for _, s := range e.loaded.Seconds[:known] {
		if e.loaded.Parts[s.Part].Verdict == bpf.PartChanged {
			x.threads[s.Tid] = activity{s.Switches, s.Runtime}
			x.gone--
		}
	}
	x.span, x.verify = t.spanOfSecond()
	return x
}

func verdict(x *recheck, p *bpf.TrapPart) {
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
	if e.team.bpf.Latency != levelThread {
		return
	}
	for i := range c.phases {
		p := &c.phases[i]
		p.UnwindNs = e.loaded.Workers[p.CPU].UnwindNs
		p.Present |= kcdata.PhasesHaveUnwind
	}
}

// traces adds what the programs noted. They end an item by its part's state,
// the file by why it is left out.
func (e *trap) traces(c *captured, t *trapTry) {
	for _, w := range t.here {
		if w.away {
			continue
		}
		r := &e.loaded.Traces[w.cpu]
		for _, x := range r.Events[:min(r.Next, bpf.TraceEvents)] {
			if x.Place == kcdata.TraceItemEnd {
				x.Datum = x.Datum>>32<<32 | uint64(leftOut(&bpf.TrapPart{Worker: x.CPU + 1, State: uint32(x.Datum)}))
			}
			c.trace = append(c.trace, kcdata.LinuxTrace{AtNs: x.At, Datum: x.Datum, CPU: x.CPU, Place: x.Place})
		}
	}
}
