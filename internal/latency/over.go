package latency

import "stackshot/internal/show"

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

// held returns a duration of the stop; nil if nothing was stopped: it means nothing then.
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
