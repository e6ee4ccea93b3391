package screen

import (
	"fmt"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// suspect is a thread that a CPU ran which did not stop in time: an alarm names it, with what it
// did. The sections do not name it again.
type suspect struct {
	by  *thread
	cpu uint32
}

func (v *view) suspects() (out []suspect) {
	for i := range v.s.CPUs {
		c := &v.s.CPUs[i]
		const known = kcdata.CPUMissed | kcdata.CPURanKnown
		if c.Flags&known != known || c.Flags&kcdata.CPUIdle != 0 {
			continue
		}
		for _, t := range v.threads {
			if t.ID == uint64(c.RanTid) && t.task.ID == uint64(c.RanTgid) {
				out = append(out, suspect{t, c.CPU})
			}
		}
	}
	return out
}

// behindSuspect says who waits for a CPU that did not stop in time; ok is false if nobody does.
func (v *view) behindSuspect(x suspect, l *load) (e entry, waiting []*thread, ok bool) {
	for _, t := range l.waiting {
		if t.Linux.CPU == x.cpu && t != x.by && !v.told[t.Thread] {
			waiting = append(waiting, t)
		}
	}
	if len(waiting) == 0 {
		return entry{}, nil, false
	}
	first := waiting[0]
	words := fmt.Sprintf("%s waits%s for CPU %d, which did not stop", first.name(), upTo(first.age), x.cpu)
	if n := len(waiting) - 1; n > 0 {
		words += fmt.Sprintf(", and %s", show.Count(n, "more thread"))
	}
	return entry{line: row(age(first.age), words), threads: len(waiting), pid: x.by.task.ID, minor: true}, waiting, true
}
