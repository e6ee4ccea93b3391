package screen

import (
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/model"
	"stackshot/internal/show"
)

// When disks are worth a line. No entry makes a machine ill: a backup keeps its disk busy for
// hours, and who waits there for too long is in STUCK.
const (
	// diskSome and diskFull: the share of the last 10 s, in percent, in which some threads waited
	// for I/O, or all that had work did. Databases and logs that sync each write reach a quarter
	// with some. One command that reads for a second on an idle machine makes 10 % of full: all that has
	// work waits.
	diskSome = 40.0
	diskFull = 20.0
	// diskThreads, and diskPerCPU for each CPU: so many in D at once are worth a line whatever the
	// pressure. It rises within seconds only, and many kernels have none. A build that reads its
	// sources for the first time has one for each CPU there.
	diskThreads = 8
	diskPerCPU  = 2
)

// disk says how much of the time threads have waited for I/O, and who waits there now, for less
// than minD. What an entry has told explains the pressure: threads in D for longer, or those that
// are short of memory and wait for its pages.
func (v *view) disk() section {
	out, p := section{title: "DISK"}, pressureOf(v.s.Pressure, "io")
	var now []*thread
	told := map[string]bool{} // places
	for _, t := range v.threads {
		switch {
		case t.state.Class != model.Blocked || t.wait == nil || !atMount[t.wait.Kind]:
		case v.told[t.Thread]:
			told[v.diskOf(t)] = true
		case t.age.Known && t.age.Ns < minD:
			now = append(now, t)
		}
	}
	pressed := p.some >= diskSome || p.full >= diskFull
	explained := len(told) > 0 && !slices.ContainsFunc(now, func(t *thread) bool { return !told[v.diskOf(t)] })
	if len(now) < max(diskThreads, diskPerCPU*len(v.s.CPUs)) && (explained || !pressed) {
		return out
	}
	longestFirst(now)
	e := entry{threads: len(now), minor: true}
	var words show.Parts
	words.Add("%s", p.words("all threads", "I/O"))
	for i, list := range v.byDisk(now) {
		s := fmt.Sprintf("%d in D %s: %s", len(list), v.diskOf(list[0]), programs(list))
		if i > 0 {
			e.more = append(e.more, s)
			continue
		}
		words.Add("%s", s)
	}
	words.If(len(now) == 0, "no thread is in D there now")
	measure := p.measure()
	if len(now) > 0 {
		first := now[0]
		if measure == "" {
			measure = age(first.age)
		}
		e.more, e.pid = append(e.more, first.name()+" waits longest,"+upTo(first.age)), first.task.ID
	}
	v.tally(now)
	e.line, e.more = row(measure, words.Join("; ")), details(e.more...)
	out.entries = append(out.entries, e)
	return out
}

// byDisk groups threads by where they wait, most first.
func (v *view) byDisk(threads []*thread) (out [][]*thread) {
	at := map[string]int{} // 1 + the index of the group
	for _, t := range threads {
		where := v.diskOf(t)
		if at[where] == 0 {
			out = append(out, nil)
			at[where] = len(out)
		}
		out[at[where]-1] = append(out[at[where]-1], t)
	}
	slices.SortStableFunc(out, func(a, b []*thread) int { return len(b) - len(a) })
	return out
}

// diskOf says where t waits: "at /srv (ext4, /dev/sda, on sda)", "for a block device".
func (v *view) diskOf(t *thread) string {
	if only, ok := strings.CutPrefix(v.placeOf(t), "probably "); ok {
		return "probably at " + only
	}
	before := "for "
	if f := t.wait.File; f != nil && f.Mount != nil {
		before = "at "
	}
	return before + v.words.Short(t.wait)
}

// programs names the commands of threads, those with most of them first.
func programs(threads []*thread) string {
	list := programsOf(threads)
	var s show.Parts
	for _, c := range list[:min(examples, len(list))] {
		s.Add("%s", c.several())
	}
	return s.Join(", ") + andMore(len(list)-len(s))
}
