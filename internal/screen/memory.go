package screen

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// When memory is worth a line. Shares in percent.
const (
	// nearPart: a group with less than a twentieth of its limit left is at it: the kernel charges
	// in batches, and reclaims before it is quite full. This alone is nothing: page cache fills
	// every group that reads enough, and goes when somebody needs the room.
	nearPart = 95
	// groupSome and groupFull: the share of time in which some threads of a group, or all of
	// them, wait for memory. Reclaim of page cache stays far below.
	groupSome = 10.0
	groupFull = 1.0
	// machineSome and machineFull are those of the whole machine; minorSome is worth a mention.
	machineSome = 40.0
	machineFull = 10.0
	minorSome   = 10.0
	// scarcePart: with less than this part of the memory available, reclaim does not keep up.
	scarcePart = 5
	// swapPart: swap that is as full as this takes nothing more. Harmless while memory is
	// available: cold pages fill it.
	swapPart = 95
	// maxGroups bounds the groups that are told one by one, higher than any screen.
	maxGroups = 200
)

// memory says who is short of memory: control groups at a limit that wait for it, the OOM killer,
// the machine.
func (v *view) memory() section {
	out := section{title: "MEMORY"}
	w := v.workers()
	groups := v.shortGroups(w)
	told := map[*thread]bool{}
	for i, g := range groups {
		for _, t := range g.threads {
			told[t] = true
		}
		v.tally(g.threads)
		if i < maxGroups {
			out.entries = append(out.entries, v.groupEntry(g))
		}
	}
	if n := len(groups) - maxGroups; n > 0 {
		out.entries = append(out.entries, entry{line: row("", fmt.Sprintf("and %s short of memory", show.Count(n, "more control group")))})
	}
	rest := slices.DeleteFunc(slices.Clone(w.all), func(t *thread) bool { return told[t] })
	if e, ok := v.killerEntry(w.only(rest, killing)); ok {
		out.entries = append(out.entries, e)
	}
	if e, ok := v.machineEntry(w.only(rest, direct, groupWork, swapIn), len(groups) > 0); ok {
		out.entries = append(out.entries, e)
	}
	return out
}

// shortGroup is a control group that is short of memory.
type shortGroup struct {
	*kcdata.Cgroup
	limit    uint64
	what     string // "max", "high"
	near     bool
	pressure pressure
	threads  []*thread // in it and below, that reclaim, wait or kill for it
	killing  int       // of threads
	doing    string    // what the first of them do
}

// shortGroups are the groups at a limit for which threads wait or work, worst first. Of several
// on one path the innermost is at its own limit; those above it are full with it. A group stands
// behind those above it, so its threads go up with it when it is not short itself.
func (v *view) shortGroups(w *workers) (out []*shortGroup) {
	inside, machine := maps.Clone(w.of), pressureOf(v.s.Pressure, "memory")
	inner := map[*kcdata.Cgroup]bool{} // groups with a short one below them
	for _, g := range slices.Backward(v.s.Cgroups) {
		if !inner[g] {
			if x := shortOf(g, w, inside[g], machine); x != nil {
				out = append(out, x)
				inner[g] = true
			}
		}
		if g.Above == nil {
			continue
		}
		if inner[g] {
			inner[g.Above] = true
		} else if above := inside[g.Above]; above == nil {
			inside[g.Above] = slices.Clip(inside[g])
		} else {
			inside[g.Above] = append(above, inside[g]...)
		}
	}
	slices.SortStableFunc(out, func(a, b *shortGroup) int {
		return cmp.Or(cmp.Compare(b.killing, a.killing), cmp.Compare(b.pressure.full, a.pressure.full),
			len(b.threads)-len(a.threads), cmp.Compare(b.pressure.some, a.pressure.some), cmp.Compare(a.Path, b.Path))
	})
	return out
}

// shortOf is g, if it is short of memory; else nil. A group near its limit is, if its threads
// wait. One below its limit is only if they work at that very limit, which has just made room:
// after a kill, or after its limit was raised. A group of version 1 has no pressure of its own:
// that of the machine counts for one at its limit whose threads wait for pages.
func shortOf(g *kcdata.Cgroup, w *workers, inside []*thread, machine pressure) *shortGroup {
	x := &shortGroup{Cgroup: g, pressure: pressureIn(g)}
	x.limit, x.what = limitOf(g)
	if x.limit == kcdata.CgroupUnlimited || g.Present&kcdata.CgroupHasCurrent == 0 {
		return nil
	}
	x.near = g.Current >= x.limit/100*nearPart
	killers, working, waiting := w.only(inside, killing), w.only(inside, groupWork), w.only(inside, swapIn, refault)
	stalled := x.pressure.some >= groupSome || x.pressure.full >= groupFull
	switch busy := len(killers)+len(working) > 0; {
	case isOutOfMemory(g), x.near && (stalled || busy), stalled && busy, len(killers) > 0 && len(working) > 0:
	case x.near && !x.pressure.known && len(waiting) > 0 && (machine.some >= groupSome || machine.full >= groupFull):
	default:
		return nil
	}
	for _, list := range []struct {
		threads   []*thread
		one, many string
	}{
		{killers, "thread is at the OOM killer", "threads are at the OOM killer"},
		{working, "thread reclaims", "threads reclaim"},
		{waiting, "thread waits for pages that were reclaimed", "threads wait for pages that were reclaimed"},
	} {
		longestFirst(list.threads)
		if n := len(list.threads); n > 0 && x.doing == "" {
			x.doing = fmt.Sprintf("%d %s: %s", n, verb(n, list.one, list.many), list.threads[0].name())
		}
		x.threads = append(x.threads, list.threads...)
	}
	x.killing = len(killers)
	return x
}

// isOutOfMemory: the threads of a group of version 1 sleep until somebody makes room.
func isOutOfMemory(g *kcdata.Cgroup) bool {
	return g.Present&kcdata.CgroupHasOOM != 0 && g.Flags&kcdata.CgroupUnderOOM != 0
}

// limitOf is the limit that g meets first.
func limitOf(g *kcdata.Cgroup) (limit uint64, what string) {
	limit, what = kcdata.CgroupUnlimited, "max"
	if g.Present&kcdata.CgroupHasMax != 0 {
		limit = g.Max
	}
	if g.Present&kcdata.CgroupHasHigh != 0 && g.High < limit {
		limit, what = g.High, "high"
	}
	return limit, what
}
