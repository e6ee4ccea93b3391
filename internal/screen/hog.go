package screen

import (
	"cmp"
	"fmt"
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/show"
)

// policyIdle is SCHED_IDLE (include/uapi/linux/sched.h).
const policyIdle = 5

// hog is a real-time thread that has a CPU.
type hog struct {
	by      *thread
	waiting []*thread // on its CPU's runqueue, longest first; nil: nobody has waited for hogNs
}

// hogs finds the real-time threads that keep a CPU.
func (v *view) hogs(l *load) (out []hog) {
	behind := map[uint32][]*thread{}
	for _, w := range l.waiting {
		if !isRealTime(w) {
			behind[w.Linux.CPU] = append(behind[w.Linux.CPU], w)
		}
	}
	for _, t := range l.all() {
		if !isRealTime(t) || !v.keepsCPU(t) {
			continue
		}
		h := hog{by: t, waiting: behind[t.Linux.CPU]}
		if len(h.waiting) > 0 && !(h.waiting[0].age.Known && h.waiting[0].age.Ns >= hogNs) {
			h.waiting = nil
		}
		out = append(out, h)
	}
	return out
}

func isRealTime(t *thread) bool { return model.RealTime(t.Thread) != "" }

// keepsCPU reports whether t has had its CPU for hogNs, or has been on one for half of its life:
// the kernel's throttling and its fair server let others run before a hog for 50 ms of each second,
// and this program takes a CPU for less. So a hog may have just come back, or waits for a moment.
func (v *view) keepsCPU(t *thread) bool {
	if t.age.Known && t.age.Ns >= hogNs {
		return t.state.Class == model.Running
	}
	return model.MostlyRuns(v.s, t.Thread)
}

// entry names a hog and who waits behind it. Where nobody does it is minor: to poll on a CPU of
// its own is what some real-time threads are for.
func (h *hog) entry(l *load) entry {
	t := h.by
	e := entry{threads: 1 + len(h.waiting), pid: t.task.ID, minor: len(h.waiting) == 0}
	has, measure := "has", age(t.age)
	if t.age.Ns < hogNs {
		has, measure = "mostly has", ""
	}
	if t.state.Class == model.Runnable {
		i := slices.IndexFunc(l.running, func(r *thread) bool { return r.Linux.CPU == t.Linux.CPU })
		if who := l.ours[t.Linux.CPU]; who != "" {
			e.more = append(e.more, who+" had it at the stop")
		} else if i >= 0 {
			e.more = append(e.more, l.running[i].name()+" had it at the stop")
		}
	}
	words := fmt.Sprintf("%s: %s %s CPU %d", model.RealTime(t.Thread), t.name(), has, t.Linux.CPU)
	if n := len(h.waiting) - 1; n >= 0 {
		w := h.waiting[0]
		words += fmt.Sprintf("; %s waits%s", w.name(), upTo(w.age))
		measure = cmp.Or(measure, age(w.age))
		if n > 0 {
			e.more = append(e.more, fmt.Sprintf("%s %s for CPU %d", show.Count(n, "more thread"), verb(n, "waits", "wait"), t.Linux.CPU))
		}
	}
	e.line, e.more = row(measure, words), details(e.more...)
	return e
}
