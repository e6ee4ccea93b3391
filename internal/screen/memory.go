package screen

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"stackshot/internal/cgroupname"
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
	minorSome   = 5.0
	// scarcePart: with less than this part of the memory available, reclaim does not keep up.
	scarcePart = 5
	// swapPart: swap that is as full as this takes nothing more. Harmless while memory is
	// available: cold pages fill it.
	swapPart = 95
)

// memory says who is short of memory: control groups at a limit that wait for it, the OOM killer,
// the machine.
func (v *view) memory() section {
	out := section{title: "MEMORY"}
	w := v.workers()
	groups := v.shortGroups(w)
	told := map[*thread]bool{}
	for _, g := range groups {
		for _, t := range g.threads {
			told[t] = true
		}
		out.entries = append(out.entries, v.groupEntry(g))
	}
	rest := slices.DeleteFunc(slices.Clone(w.all), func(t *thread) bool { return told[t] })
	if e, ok := killerEntry(w.only(rest, killing)); ok {
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
}

// shortGroups are the groups at a limit for which threads wait or work, worst first. Of several
// on one path the innermost is at its own limit; those above it are full with it. A group stands
// behind those above it, so its threads go up with it when it is not short itself.
func (v *view) shortGroups(w *workers) (out []*shortGroup) {
	inside := maps.Clone(w.of)
	inner := map[*kcdata.Cgroup]bool{} // groups with a short one below them
	for _, g := range slices.Backward(v.s.Cgroups) {
		if !inner[g] {
			if x := shortOf(g, w, inside[g]); x != nil {
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
			inside[g.Above] = inside[g]
		} else {
			inside[g.Above] = append(slices.Clip(above), inside[g]...)
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
// after a kill, or after its limit was raised.
func shortOf(g *kcdata.Cgroup, w *workers, inside []*thread) *shortGroup {
	x := &shortGroup{Cgroup: g, pressure: pressureIn(g)}
	x.limit, x.what = limitOf(g)
	if x.limit == kcdata.CgroupUnlimited || g.Present&kcdata.CgroupHasCurrent == 0 {
		return nil
	}
	x.near = g.Current >= x.limit/100*nearPart
	x.threads = w.only(inside, killing, groupWork, swapIn)
	longestFirst(x.threads)
	working := 0
	for _, t := range x.threads {
		switch w.doing[t] {
		case killing:
			x.killing++
		case groupWork:
			working++
		}
	}
	stalled := x.pressure.some >= groupSome || x.pressure.full >= groupFull
	under := g.Present&kcdata.CgroupHasOOM != 0 && g.Flags&kcdata.CgroupUnderOOM != 0
	switch {
	case under, x.near && (stalled || working > 0 || x.killing > 0), x.killing > 0 && working > 0, stalled && working > 0:
		return x
	}
	return nil
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

func (v *view) groupEntry(g *shortGroup) entry {
	name := cmp.Or(cgroupname.Short(g.Path), "the root group")
	words := fmt.Sprintf("%s has %s of %s (memory.%s)", name, show.Size(g.Current), show.Size(g.limit), g.limitFile())
	if g.Flags&kcdata.CgroupUnderOOM != 0 && g.Present&kcdata.CgroupHasOOM != 0 {
		words += ", is out of memory"
	}
	words += g.pressure.words()
	e := entry{threads: len(g.threads)}
	if n := len(g.threads); n > 0 {
		what := verb(n, "thread reclaims", "threads reclaim")
		if g.killing > 0 {
			what = verb(n, "thread is", "threads are") + " at the OOM killer"
		}
		words += fmt.Sprintf("; %d %s: %s", n, what, g.threads[0].name())
		e.more, e.pid = append(e.more, namesOf(g.threads)), g.threads[0].task.ID
	}
	e.line = row(g.pressure.measure(), words)
	if s := g.events(); s != "" {
		e.more = append(e.more, "in its life: "+s)
	}
	if path := show.Clean(g.Path); path != name {
		e.more = append(e.more, "its control group is "+path)
	}
	e.more = details(e.more...)
	return e
}

// limitFile is the name of the limit, as the group's version has it.
func (g *shortGroup) limitFile() string {
	if g.Version == 1 {
		return "limit_in_bytes"
	}
	return g.what
}

// events says what has happened to the group in its life.
func (g *shortGroup) events() string {
	var s show.Parts
	has := func(bit uint32, n uint64) bool { return g.Present&bit != 0 && n > 0 }
	s.If(has(kcdata.CgroupHasOOMKill, g.OOMKill), "the OOM killer killed %s of its processes", show.Thousands(g.OOMKill))
	s.If(has(kcdata.CgroupHasEvents|kcdata.CgroupHasFails, g.MaxEvents), "%s times at its limit", show.Thousands(g.MaxEvents))
	s.If(has(kcdata.CgroupHasEvents, g.HighEvents), "%s times above memory.high", show.Thousands(g.HighEvents))
	return s.Join(", ")
}

// words says what of the last 10 s was lost; "" if nothing was, or if that is not known.
func (p pressure) words() string {
	switch {
	case p.fullKnown && p.full >= 1:
		return fmt.Sprintf("; all its threads waited for memory %.0f %% of 10 s", p.full)
	case p.known && p.some >= 1:
		return fmt.Sprintf("; threads waited for memory %.0f %% of 10 s", p.some)
	}
	return ""
}

// measure is the share of time in which somebody waited.
func (p pressure) measure() string {
	if !p.known {
		return ""
	}
	return fmt.Sprintf("%.0f %%", p.some)
}

// namesOf names up to three of threads, with how long each has been at it.
func namesOf(threads []*thread) string {
	var s show.Parts
	for _, t := range threads[:min(3, len(threads))] {
		s.Add("%s%s", t.name(), upTo(t.age))
	}
	rest := ""
	if n := len(threads) - 3; n > 0 {
		rest = fmt.Sprintf(" and %d more", n)
	}
	return "at work for memory: " + s.Join(", ") + rest
}
