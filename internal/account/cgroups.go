package account

import (
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// CgroupsJSON is the object of the report; nil if nobody looked at control groups.
func CgroupsJSON(s *kcdata.Snapshot) show.Object {
	t := s.CgroupsTaken
	if t == nil {
		return nil
	}
	number := make(map[*kcdata.Cgroup]int, len(s.Cgroups))
	for i, g := range s.Cgroups {
		number[g] = i
	}
	groups := make([]show.Object, len(s.Cgroups))
	for i, g := range s.Cgroups {
		var above *int
		if n, ok := number[g.Above]; ok {
			above = &n
		}
		groups[i] = cgroupJSON(g, above)
	}
	return show.Object{
		{"version", show.Known(t.Version)}, {"tasks", t.Tasks}, {"unknown", t.Unknown}, {"with_threads", t.Groups}, {"above", t.Above},
		{"read", t.Read}, {"gone", t.Gone}, {"denied", t.Denied}, {"late", t.Late}, {"hidden", t.Hidden}, {"failed", t.Failed}, {"rest", t.Rest},
		{"monotonic_ns", t.AtNs}, {"total_ns", t.TotalNs}, {"not_done", append([]string{}, model.CgroupsNotDone.Names(t.Flags)...)}, {"groups", groups},
	}
}

func cgroupJSON(g *kcdata.Cgroup, above *int) show.Object {
	p := uint64(g.Present)
	var unlimited []string
	limit := func(name string, bit uint64, v uint64) *uint64 {
		if p&bit != 0 && v == kcdata.CgroupUnlimited {
			unlimited = append(unlimited, name)
			return nil
		}
		return show.Present(p, bit, v)
	}
	most, high, soft, swapMax := limit("max", kcdata.CgroupHasMax, g.Max), limit("high", kcdata.CgroupHasHigh, g.High),
		limit("soft", kcdata.CgroupHasSoft, g.Soft), limit("swap_max", kcdata.CgroupHasSwapMax, g.SwapMax)
	return show.Object{
		{"path", show.Clean(g.Path)}, {"version", g.Version}, {"above", above}, {"outcome", model.CgroupOutcome(g.Outcome)}, {"errno", show.Known(g.Errno)},
		{"flags", append([]string{}, model.CgroupFlags.Names(g.Flags)...)}, {"tasks", g.Tasks}, {"threads", g.Threads}, {"id", show.Present(p, kcdata.CgroupHasID, show.Hex(g.ID))},
		{"current", show.Present(p, kcdata.CgroupHasCurrent, g.Current)}, {"max", most}, {"high", high}, {"soft", soft},
		{"swap", show.Present(p, kcdata.CgroupHasSwap, g.Swap)}, {"swap_max", swapMax}, {"unlimited", unlimited},
		{"low_events", show.Present(p, kcdata.CgroupHasEvents, g.LowEvents)}, {"high_events", show.Present(p, kcdata.CgroupHasEvents, g.HighEvents)},
		{"max_events", show.Present(p, kcdata.CgroupHasEvents|kcdata.CgroupHasFails, g.MaxEvents)},
		{"oom_events", show.Present(p, kcdata.CgroupHasEvents, g.OOMEvents)}, {"oom_kill", show.Present(p, kcdata.CgroupHasOOMKill, g.OOMKill)},
		{"oom_group_kill", show.Present(p, kcdata.CgroupHasGroupKill, g.OOMGroupKill)}, {"pressure", pressureJSON(g)},
	}
}

// pressureJSON has shares as percentages.
func pressureJSON(g *kcdata.Cgroup) show.Object {
	if g.Present&kcdata.CgroupHasPressure == 0 {
		return nil
	}
	percent := func(hundredths uint32) float64 { return float64(hundredths) / 100 }
	return show.Object{
		{"some_avg10", percent(g.SomeAvg10)}, {"some_avg60", percent(g.SomeAvg60)}, {"some_total_us", g.SomeTotalUs},
		{"full_avg10", percent(g.FullAvg10)}, {"full_avg60", percent(g.FullAvg60)}, {"full_total_us", g.FullTotalUs},
	}
}
