package trap

import (
	"fmt"
	"slices"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
	"stackshot/internal/trapmemory"
	"stackshot/kcdata"
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

// Parts adds to the capture what became of each item.
func (e *Engine) Parts(c *capture.Raw, t *Try) {
	m := trapmemory.Memory{
		Items: slices.Collect(e.Mem.Queue.All()), Parts: e.Loaded.Parts,
		Fill: func(p *bpf.TrapPart, to *capture.Part) (bytes uint64, err error) {
			for piece := range e.Loaded.Stream(p) {
				to.Pieces, bytes = append(to.Pieces, piece), bytes+uint64(len(piece))
			}
			return bytes, nil
		},
	}
	m.Into(c, func(p *bpf.TrapPart, bytes uint64) {
		if w := stop.WorkerOf(t.Here, int(p.Worker)-1); w != nil {
			w.Did.Add(p.Threads, bytes)
		}
	})
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
				x.Datum = x.Datum>>32<<32 | uint64(trapmemory.LeftOut(&bpf.TrapPart{Worker: x.Cpu + 1, State: uint32(x.Datum)}))
			}
			c.Trace = append(c.Trace, kcdata.LinuxTrace{AtNs: x.At, Datum: x.Datum, CPU: x.Cpu, Place: x.Place})
		}
	}
}
