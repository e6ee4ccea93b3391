package latency

import (
	"cmp"
	"fmt"

	"stackshot/internal/show"
)

// Over returns the distributions over many files. A figure that a file does not hold
// counts nowhere, so Count may differ from the number of files.
func Over(files []*Figures) []Dist {
	var pauses []Pause
	for _, f := range files {
		if f.Pause != nil {
			pauses = append(pauses, *f.Pause)
		}
	}
	out := make([]Dist, 0, len(overFiles))
	for _, m := range overFiles {
		out = append(out, distOf(m.name, m.unit, pauses, m.of))
	}
	return out
}

// overFiles are the figures that are compared between files.
var overFiles = []struct {
	name, unit string
	of         func(*Pause) *uint64 // nil: the file does not hold it
}{
	{"stopped_ns", UnitNs, func(p *Pause) *uint64 { return p.held(p.StoppedNs) }},
	{"window_ns", UnitNs, func(p *Pause) *uint64 { return p.held(p.WindowNs) }},
	{"arrival_ns", UnitNs, func(p *Pause) *uint64 { return p.held(p.ArrivalNs) }},
	{"census_ns", UnitNs, func(p *Pause) *uint64 { return p.held(p.CensusNs) }},
	{"release_ns", UnitNs, func(p *Pause) *uint64 { return p.held(p.ReleaseNs) }},
	{"record_per_thread_ns", UnitNs, (*Pause).recordNs},
	{"tries", UnitCount, (*Pause).triesMade},
	{"lost_ns", UnitNs, func(p *Pause) *uint64 { return p.LostNs }},
	{"threads_ran", UnitCount, (*Pause).threadsRan},
	{"request_to_stop_ns", UnitNs, func(p *Pause) *uint64 { return p.ToStopNs }},
}

// held returns a duration of the stop; nil if nothing was stopped, because the duration then
// has no meaning.
func (p *Pause) held(ns uint64) *uint64 {
	if !p.Stopped {
		return nil
	}
	return &ns
}

func (p *Pause) recordNs() *uint64 {
	if p.Cost == nil {
		return nil
	}
	return &p.Cost.RecordNs
}

func (p *Pause) threadsRan() *uint64 {
	if p.Ran == nil {
		return nil
	}
	return new(uint64(p.Ran.Ran))
}

func (p *Pause) triesMade() *uint64 { return show.Known(uint64(p.TryCount)) }

// many writes one line for each file, then the distributions over all files.
func (p *page) many(files []*Figures) {
	p.Line("latency of %s", show.Count(len(files), "file"))
	p.Line("")
	head := []string{"stopped", "window", "skew", "a thread", "threads", "ran", "tries", "wait", "D", "file"}
	p.table(true, rowsOf(head, files, func(f **Figures) []string { return fileRow(*f) }))
	p.Words("", "ran: threads that ran between their record and the second pass; wait, D: the longest time, at most, for which a thread had waited for a CPU or been in D")
	p.heading("DISTRIBUTIONS over %s", show.Count(len(files), "file"))
	p.dists(Over(files))
}

func fileRow(f *Figures) []string {
	p := cmp.Or(f.Pause, &Pause{}) // one without figures
	return []string{
		cell(p.held(p.StoppedNs), show.Fine), cell(p.held(p.WindowNs), show.Fine), cell(p.held(p.ArrivalNs), show.Fine),
		cell(p.recordNs(), show.Fine), show.Thousands(uint64(f.Machine.Threads)), cell(p.threadsRan(), show.Thousands),
		cell(p.triesMade(), func(n uint64) string { return fmt.Sprint(n) }), longest(&f.Sched.Waiting), longest(&f.Sched.Blocked), f.File,
	}
}

func longest(a *Ages) string {
	if a.Dist.Count == 0 {
		return "-"
	}
	return show.Fine(a.Dist.Max)
}
