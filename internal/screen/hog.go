package screen

import (
	"fmt"

	"stackshot/internal/model"
	"stackshot/internal/show"
)

// policyIdle is SCHED_IDLE (include/uapi/linux/sched.h).
const policyIdle = 5

// hog is a real-time thread that others wait behind.
type hog struct {
	by      *thread
	waiting []*thread // on its CPU's runqueue, longest first
}

// hogs finds the real-time threads that have kept others from their CPU for hogNs. One that has
// just come back from the kernel's throttling has not been on its CPU for long: then most of its
// life on a CPU tells.
func (v *view) hogs(l *load) (out []hog) {
	for _, t := range l.running {
		if !isRealTime(t) || !v.keepsCPU(t) {
			continue
		}
		h := hog{by: t}
		for _, w := range l.waiting {
			if w.Linux.CPU == t.Linux.CPU && !isRealTime(w) {
				h.waiting = append(h.waiting, w)
			}
		}
		if len(h.waiting) > 0 && h.waiting[0].age.Known && h.waiting[0].age.Ns >= hogNs {
			out = append(out, h)
		}
	}
	return out
}

func isRealTime(t *thread) bool { return model.RealTime(t.Thread) != "" }

// keepsCPU reports whether t has had its CPU for hogNs, or has been on one for half of its life.
func (v *view) keepsCPU(t *thread) bool {
	if t.age.Known && t.age.Ns >= hogNs {
		return true
	}
	return model.MostlyRuns(v.s, t.Thread)
}

func (h *hog) entry() entry {
	t, w := h.by, h.waiting[0]
	e := entry{threads: 1 + len(h.waiting), pid: t.task.ID}
	e.line = row(age(t.age), fmt.Sprintf("%s: %s has CPU %d; %s waits%s", model.RealTime(t.Thread), t.name(), t.Linux.CPU, w.name(), upTo(w.age)))
	if n := len(h.waiting) - 1; n > 0 {
		e.more = details(fmt.Sprintf("%s %s for CPU %d", show.Count(n, "more thread"), verb(n, "waits", "wait"), t.Linux.CPU))
	}
	return e
}
