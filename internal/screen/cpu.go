package screen

import (
	"cmp"
	"fmt"
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// When a wait for a CPU is worth a line. Times in ns.
const (
	// starvedNs: nobody waits so long among equals. A CPU's threads take turns of about 3 ms, so
	// even 100 of them come round in a third of this. Who waits longer is behind somebody that
	// goes first: a real-time thread, a nice value, a weight or a quota of a control group.
	starvedNs = 1e9
	// hogNs: a real-time thread that keeps others waiting for so long does not do what real time
	// is for. It is a tenth of what the kernel leaves such threads of each second (950 ms).
	hogNs = 100e6
	// busyNs: a younger wait is how any machine works, unless there is pressure (busyShare) and
	// somebody waits for longer than a turn (turnNs).
	busyNs    = 20e6
	busyShare = 10.0
	turnNs    = 3e6
)

// load is what the CPUs of a snapshot do, and who waits for them. No stackshot's threads are in
// it, be it this one or another, nor are the suspects, whom an alarm names.
type load struct {
	cpus     int        // that the file has
	idle     int        // of these, CPUs that had nothing to run
	running  []*thread  // longest on their CPU first
	waiting  []*thread  // longest wait first
	programs []*program // of all that no line has named as a hog
	pressure pressure
	ours     map[uint32]string // which stackshot had a CPU
}

// runnable is how many threads run or wait for a CPU.
func (l *load) runnable() int { return len(l.running) + len(l.waiting) }

// all are these threads, those that run first.
func (l *load) all() []*thread { return append(slices.Clone(l.running), l.waiting...) }

func (v *view) load() *load {
	l := &load{cpus: len(v.s.CPUs), pressure: pressureOf(v.s.Pressure, "cpu")}
	missed, stackshots := map[*thread]bool{}, v.stackshots()
	for _, x := range v.suspects {
		missed[x.by] = true
	}
	for _, t := range v.threads {
		switch {
		case missed[t] || stackshots[t.task.ID] != "":
		case t.state.Class == model.Running:
			l.running = append(l.running, t)
		case t.state.Class == model.Runnable:
			l.waiting = append(l.waiting, t)
		}
	}
	l.idle, l.ours = v.idleCPUs(), v.hadCPUs(stackshots)
	longestFirst(l.running)
	longestFirst(l.waiting)
	return l
}

// ran is who had each CPU when the stop took it.
func (v *view) ran() map[uint32]*thread {
	ran := map[uint32]*thread{}
	for _, t := range v.threads {
		if t.state.Class == model.Running {
			ran[t.Linux.CPU] = t
		}
	}
	return ran
}

// idleCPUs is how many CPUs had nothing to run when the stop took them.
func (v *view) idleCPUs() (n int) {
	ran := v.ran()
	for i := range v.s.CPUs {
		if c := &v.s.CPUs[i]; c.Flags&kcdata.CPUIdle != 0 && ran[c.CPU] == nil {
			n++
		}
	}
	return n
}

// cpu says who has the CPUs, and who waits for them: real-time threads that let nobody else run,
// then a crowd or who starves. A machine that is only busy has a minor entry, and one with an
// idle CPU and no long wait has none.
func (v *view) cpu() section {
	l := v.load()
	out := section{title: "CPU"}
	behind := map[*thread]bool{} // threads that an entry has told of, also one of STUCK
	for _, t := range l.waiting {
		behind[t] = v.told[t.Thread]
	}
	for _, x := range v.suspects {
		if e, waiting, ok := v.behindSuspect(x, l); ok {
			out.entries = append(out.entries, e)
			for _, t := range waiting {
				behind[t] = true
			}
		}
	}
	explained := len(out.entries) > 0
	for _, h := range v.hogs(l) {
		if v.named[h.by.Thread] {
			continue // it is what the machine is stuck behind, and is told there
		}
		v.named[h.by.Thread], behind[h.by] = true, true
		for _, t := range h.waiting {
			behind[t] = true
		}
		e := h.entry(l)
		explained = explained || !e.minor
		out.entries = append(out.entries, e)
	}
	l.programs = programsOf(slices.DeleteFunc(l.all(), func(t *thread) bool { return v.named[t.Thread] && isRealTime(t) }))
	if e, ok := v.crowd(l); ok {
		out.entries = append(out.entries, e)
	} else if e, ok := v.contention(l, behind); ok {
		e.minor = e.minor || explained
		out.entries = append(out.entries, e)
	}
	if e, ok := v.young(l); ok {
		out.entries = append(out.entries, e)
	}
	return out
}

// contention says who has the CPUs and who of all has waited longest, by whatever name: who
// starves if somebody does, or else whoever has waited for a turn. Of those who have waited
// equally long it is one that the line does not name yet: a service among many threads of one
// command is what somebody misses.
func (v *view) contention(l *load, behind map[*thread]bool) (entry, bool) {
	waiting := slices.DeleteFunc(slices.Clone(l.waiting), func(t *thread) bool { return behind[t] })
	if i := slices.IndexFunc(waiting, starved); i >= 0 {
		return v.contended(l, l.programs[0], waiting, waiting[i]), true
	}
	if !l.busy(waiting) {
		return entry{}, false
	}
	most := slices.MaxFunc(l.programs, func(a, b *program) int { return cmp.Compare(len(a.threads), len(b.threads)) })
	var longest *thread
	name := most.threads[0].task.Name
	for _, t := range waiting {
		isOther := longest != nil && t.age == longest.age && longest.task.Name == name && t.task.Name != name
		if isPastTurn(t) && (longest == nil || isOther) {
			longest = t
		}
	}
	e := v.contended(l, most, waiting, longest)
	e.minor = true
	return e, true
}

// isPastTurn reports whether t may have waited for longer than a turn: nobody misses who has not.
func isPastTurn(t *thread) bool { return !t.age.Known || t.age.Ns >= turnNs }

// busy reports whether all CPUs have had work for more than a moment.
func (l *load) busy(waiting []*thread) bool {
	if l.idle > 0 || l.cpus == 0 || len(l.programs) == 0 || l.runnable() < l.cpus {
		return false
	}
	long := func(t *thread) bool { return t.age.Known && t.age.Ns >= busyNs }
	steady := len(l.running) >= l.cpus && !slices.ContainsFunc(l.running, func(t *thread) bool { return !long(t) })
	if steady || len(waiting) == 0 || !waiting[0].age.Known {
		return steady || l.pressure.some >= busyShare
	}
	return waiting[0].age.Ns >= busyNs || l.pressure.some >= busyShare && waiting[0].age.Ns >= turnNs
}

// starved reports whether t has waited for longer than its place in the queue explains. Who asked
// to go last (a positive nice value, SCHED_IDLE) does not starve.
func starved(t *thread) bool {
	return t.age.Known && t.age.Ns >= starvedNs && t.Linux.Nice <= 0 && t.Linux.Policy != policyIdle
}

// contended makes the line: who has the CPUs; who waits, and how long.
func (v *view) contended(l *load, by *program, waiting []*thread, longest *thread) entry {
	e := entry{more: l.oursWords(), line: row("", l.holds(by)), threads: l.runnable(), pid: by.tasks[0].ID}
	for _, other := range l.programs { // those with the most CPUs come first
		if other != by && other.running > 0 && by.running < l.cpus {
			e.more = append(e.more, l.holds(other))
			break
		}
	}
	if longest != nil {
		e.line = row(age(longest.age), fmt.Sprintf("%s; %s waits%s", l.holds(by), longest.name(), upTo(longest.age)))
		if n := len(waiting) - 1; n > 0 {
			e.more = append(e.more, fmt.Sprintf("%s %s for a CPU%s", show.Count(n, "more thread"), verb(n, "waits", "wait"), ofWhom(waiting, longest)))
		}
		if home := v.home(longest.task); home != "" {
			e.more = append(e.more, longest.name()+" is in "+home)
		}
	}
	if l.idle > 0 && longest != nil {
		e.more = append(e.more, fmt.Sprintf("%d of %d CPUs %s idle: a quota (cpu.max) or an affinity keeps it waiting", l.idle, l.cpus, verb(l.idle, "is", "are")))
	}
	e.more = details(append(e.more, v.aboutProgram(by)...)...)
	return e
}

// holds says how many CPUs a command has, in few words.
func (l *load) holds(c *program) string {
	switch {
	case len(l.running)+len(l.ours) == 0 || l.cpus == 0: // nothing was stopped: nobody knows who ran
		return fmt.Sprintf("%s of %s", c.several(), show.Count(l.runnable(), "runnable thread"))
	case c.running == 0:
		return fmt.Sprintf("%s %s for %s", c.several(), verb(len(c.threads), "waits", "wait"), show.Count(l.cpus, "CPU"))
	case len(c.threads) == 1:
		return fmt.Sprintf("%s has %d of %d CPUs", c.threads[0].name(), c.running, l.cpus)
	}
	return fmt.Sprintf("%s have %d of %d CPUs", c.several(), c.running, l.cpus)
}

// ofWhom names the command that most of the others who wait are of.
func ofWhom(waiting []*thread, but *thread) string {
	others := slices.DeleteFunc(slices.Clone(waiting), func(t *thread) bool { return t == but })
	if list := programsOf(others); len(list) > 0 && len(list[0].threads) > 1 {
		return fmt.Sprintf(", %d of %s", len(list[0].threads), list[0].name)
	}
	return ""
}

// upTo follows a verb and says how long: " up to 4.1 s"; "" if that is not known.
func upTo(a model.Age) string {
	switch {
	case !a.Known:
		return ""
	case a.About:
		return " about " + show.Duration(a.Ns)
	}
	return " up to " + show.Duration(a.Ns)
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
