package screen

import (
	"cmp"

	"stackshot/internal/cgroupname"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// groupEntry says how full a group is, what that costs it, and who is at work for it.
func (v *view) groupEntry(g *shortGroup) entry {
	name := cmp.Or(cgroupname.Short(g.Path), "the root group")
	state := ""
	if isOutOfMemory(g.Cgroup) {
		state = ", is out of memory"
	}
	var words show.Parts
	words.Add("%s has %s of %s (memory.%s)%s", name, show.Size(g.Current), show.Size(g.limit), g.limitFile(), state)
	words.Add("%s", g.pressure.words("all its threads", "memory"))
	words.Add("%s", g.doing)
	e := entry{threads: len(g.threads)}
	if len(g.threads) > 0 {
		e.more, e.pid = append(e.more, namesOf(g.threads)), g.threads[0].task.ID
	}
	measure := g.pressure.measure()
	if measure == "" && len(g.threads) > 0 { // version 1 has no pressure of a group
		measure = age(g.threads[0].age)
	}
	e.line = row(measure, words.Join("; "))
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

// namesOf names examples of threads, with how long each has been at it.
func namesOf(threads []*thread) string {
	var s show.Parts
	for _, t := range threads[:min(examples, len(threads))] {
		s.Add("%s%s", t.name(), upTo(t.age))
	}
	return "at work for memory: " + s.Join(", ") + andMore(len(threads)-len(s))
}
