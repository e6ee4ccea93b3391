package trap

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// result makes a raw capture of what the programs left in their maps.
func (e *Engine) result(t *Try, missing []*stop.Worker) (*capture.Raw, error) {
	s := e.Loaded.Stop
	c := &capture.Raw{
		Engine: capture.Trap, Isolation: e.heldLevel(t), SeenTasks: int(s.SeenTasks), SeenThreads: int(s.SeenThreads),
		RanShort: t.State.RanShort(), WholeCensus: s.CensusWhole != 0, WaitSources: e.Team.Objects.WaitSources, FileSources: e.Team.Objects.FileSources,
	}
	e.Parts(c, t)
	for _, w := range t.Here {
		w.Did.Spill = e.Loaded.Workers[w.CPU].Spill
	}
	c.Second = e.second(t)
	err := e.Team.Describe(c, t.Try, e.Mem, missing)
	e.traces(c, t)
	e.unwinding(c)
	return c, err
}

// Unheld names a CPU that was part of the stop and did not have its interrupts off
// in time.
func (t *Try) Unheld() string {
	var first int64
	var last *stop.Worker
	off := func(w *stop.Worker) int64 { return int64(t.loaded.Workers[w.CPU].Off) }
	for _, w := range t.Here {
		if off(w) != 0 {
			first = stop.Earlier(first, off(w))
		}
		if w.Stamp.Arrived != 0 && (last == nil || off(w) == 0 || off(last) != 0 && off(w) > off(last)) {
			last = w
		}
	}
	if first == 0 {
		return ""
	}
	return fmt.Sprintf("CPU %d was counted in and did not hold still %v after another did", last.CPU, time.Duration(t.loaded.Stop.HoldNs))
}

// heldLevel is the isolation that all who took part had.
func (e *Engine) heldLevel(t *Try) string {
	level := uint32(bpf.PreemptionOff | bpf.InterruptsOff)
	for _, w := range t.Here {
		if w.Stamp.In {
			level &= e.Loaded.Workers[w.CPU].Level
		}
	}
	return e.levelOf(level)
}

// fate is what became of one task, over all its parts.
type fate struct {
	why          uint32 // it is left out; 0: it is not
	gaps         bool   // the thread that a part began at was gone
	opened, ends bool   // by its whole parts: has the container's begin, its end
	last         int    // number of its last whole part
}

// fates are by census index. Where a CPU was left running, the thread that a part
// begins at can end before the part is recorded. Then the other parts of the task are
// kept. If a part is not whole for any other reason, the whole task is left out.
func (e *Engine) fates(items []workqueue.Item) map[uint32]*fate {
	out := map[uint32]*fate{}
	for n, it := range items {
		f, part := out[it.Index], &e.Loaded.Parts[n]
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

// failure describes a part that is not in the file. If the thread at which the part begins
// is gone and the task is not, the part's other threads may live. They are left out then.
func (f *fate) failure(it workqueue.Item, why uint32) capture.Failure {
	if why == kcdata.LeftOutVanished && f.why == 0 && f.opened {
		return capture.Failure{Item: it, Reason: kcdata.LeftOutError, Errno: unix.ESRCH}
	}
	return capture.Failure{Item: it, Reason: why, Errno: errnoOf(why)}
}

// Parts adds to the capture what became of each item.
func (e *Engine) Parts(c *capture.Raw, t *Try) {
	items := slices.Collect(e.Mem.Queue.All())
	fates := e.fates(items)
	for n, it := range items {
		part, f := &e.Loaded.Parts[n], fates[it.Index]
		if part.Worker == 0 {
			continue // nobody took it: it is still in the queue
		}
		why := f.why
		if why == 0 {
			why = leftOut(part)
		}
		if why != 0 {
			c.Failed = append(c.Failed, f.failure(it, why))
			continue
		}
		pieces := slices.Collect(e.Loaded.Stream(part))
		if w := stop.WorkerOf(t.Here, int(part.Worker)-1); w != nil {
			w.Did.Add(part.Threads, sizeOfPieces(pieces))
		}
		if f.gaps && !f.ends && n == f.last {
			pieces = append(pieces, endOf(uint64(it.Tgid)))
		}
		c.Add(it, part.Threads, pieces, capture.Cost{
			Setup: int64(part.SetupNs), Head: int64(part.HeadNs), Threads: int64(part.ThreadsNs), End: int64(part.EndNs),
		})
	}
}

func sizeOfPieces(pieces [][]byte) (n uint64) {
	for _, p := range pieces {
		n += uint64(len(p))
	}
	return n
}

// endOf gives the end of a task's container, for a task whose last part is gone.
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

// second makes a capture.Second of what the second pass found. Parts in which no
// thread ran count as a whole; the others are listed thread by thread.
func (e *Engine) second(t *Try) *capture.Second {
	x := &capture.Second{Method: kcdata.AtomicityInWindow, Threads: map[uint32]capture.Activity{}, Rest: capture.RestCounted}
	n := 0
	for it := range e.Mem.Queue.All() {
		part := &e.Loaded.Parts[n]
		n++
		if part.State != bpf.PartWhole || it.Tgid == capture.IdleTask || uint32(it.Tgid) == t.self {
			continue
		}
		verdict(x, part)
	}
	known := min(int(e.Loaded.Stop.Seconds), len(e.Loaded.Seconds))
	for _, s := range e.Loaded.Seconds[:known] {
		if e.Loaded.Parts[s.Part].Verdict == bpf.PartChanged {
			x.Threads[s.Tid] = capture.Activity{Switches: s.Switches, Runtime: s.Runtime}
			x.Gone--
		}
	}
	x.Span, x.Verify = t.SpanOfSecond()
	return x
}

func verdict(x *capture.Second, p *bpf.TrapPart) {
	switch p.Verdict {
	case bpf.PartUnchanged:
		x.Compared += p.Threads
	case bpf.PartChanged, bpf.PartGone:
		x.Gone += p.Threads // less those in the list
	default:
		x.Missed += p.Threads
	}
}

// unwinding adds what the programs measured with per-thread latency.
func (e *Engine) unwinding(c *capture.Raw) {
	if e.Team.Bpf.Latency != engine.LevelThread {
		return
	}
	for i := range c.Phases {
		p := &c.Phases[i]
		p.UnwindNs = e.Loaded.Workers[p.CPU].UnwindNs
		p.Present |= kcdata.PhasesHaveUnwind
	}
}

// traces adds the events that the programs noted. At the end of an item they note the
// part's state; the file has the reason why it is left out.
func (e *Engine) traces(c *capture.Raw, t *Try) {
	for _, w := range t.Here {
		if w.Away {
			continue
		}
		r := &e.Loaded.Traces[w.CPU]
		for _, x := range r.Events[:min(r.Next, bpf.TraceEvents)] {
			if x.Place == kcdata.TraceItemEnd {
				x.Datum = x.Datum>>32<<32 | uint64(leftOut(&bpf.TrapPart{Worker: x.Cpu + 1, State: uint32(x.Datum)}))
			}
			c.Trace = append(c.Trace, kcdata.LinuxTrace{AtNs: x.At, Datum: x.Datum, CPU: x.Cpu, Place: x.Place})
		}
	}
}
