package screen

import (
	"fmt"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// suspect is a thread that kept a CPU from the stop: an alarm names it, with what it did. The
// sections do not name it again.
type suspect struct {
	by  *thread
	cpu uint32
}

// findSuspects looks at all threads for each such CPU. Of it is filled.
func (v *view) findSuspects() (out []suspect) {
	for i := range v.s.CPUs {
		if c := &v.s.CPUs[i]; c.Flags&kcdata.CPUMissed != 0 {
			if t := v.of[model.Missed(v.s, c).Suspect]; t != nil {
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
