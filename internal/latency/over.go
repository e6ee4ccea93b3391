package latency

// Over is the distributions over many files. A figure that a file does not hold
// counts nowhere, so Count may differ from the number of files.
func Over(files []*Figures) []Dist {
	out := make([]Dist, 0, len(overFiles))
	for _, m := range overFiles {
		var values []uint64
		for _, f := range files {
			if f.Pause == nil {
				continue
			}
			if v, ok := m.of(f.Pause); ok {
				values = append(values, v)
			}
		}
		out = append(out, distOf(m.name, m.unit, values))
	}
	return out
}

var overFiles = []struct {
	name, unit string
	of         func(p *Pause) (uint64, bool)
}{
	{"stopped_ns", UnitNs, func(p *Pause) (uint64, bool) { return p.StoppedNs, p.Stopped }},
	{"window_ns", UnitNs, func(p *Pause) (uint64, bool) { return p.WindowNs, p.Stopped }},
	{"arrival_ns", UnitNs, func(p *Pause) (uint64, bool) { return p.ArrivalNs, p.Stopped }},
	{"census_ns", UnitNs, func(p *Pause) (uint64, bool) { return p.CensusNs, p.Stopped }},
	{"release_ns", UnitNs, func(p *Pause) (uint64, bool) { return p.ReleaseNs, p.Stopped }},
	{"record_per_thread_ns", UnitNs, func(p *Pause) (uint64, bool) {
		if p.Cost == nil {
			return 0, false
		}
		return p.Cost.RecordNs, true
	}},
	{"tries", UnitCount, func(p *Pause) (uint64, bool) { return uint64(p.TryCount), p.TryCount > 0 }},
	{"lost_ns", UnitNs, func(p *Pause) (uint64, bool) { return known(p.LostNs) }},
	{"threads_ran", UnitCount, func(p *Pause) (uint64, bool) {
		if p.Ran == nil {
			return 0, false
		}
		return uint64(p.Ran.Ran), true
	}},
	{"request_to_stop_ns", UnitNs, func(p *Pause) (uint64, bool) { return known(p.ToStopNs) }},
}

func known(p *uint64) (uint64, bool) {
	if p == nil {
		return 0, false
	}
	return *p, true
}
