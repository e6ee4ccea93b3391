package screen

import (
	"cmp"
	"fmt"
	"strings"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

const itself, another = "stackshot itself", "another stackshot"

// stackshots are the tasks of this program and of others of its kind, by pid. Their children help
// them, and may not have their names yet.
func (v *view) stackshots() map[uint64]string {
	named, all := map[uint64]string{}, map[uint64]string{}
	for _, t := range v.s.Tasks {
		switch {
		case t.IsSelf():
			named[t.ID] = itself
		case t.Name == "stackshot" || strings.HasPrefix(t.Name, "stackshot-"):
			named[t.ID] = another
		}
	}
	for _, t := range v.s.Tasks {
		if who := cmp.Or(named[uint64(t.Linux.Ppid)], named[t.ID]); who != "" {
			all[t.ID] = who
		}
	}
	return all
}

// hadCPUs says which CPUs stackshots had when the stop took them. The workers of this one, which
// have all of them in the stop, do not count, nor does a CPU that it had taken from somebody a
// moment before: the engine puts that one there.
func (v *view) hadCPUs(stackshots map[uint64]string) map[uint32]string {
	had, ran := map[uint32]string{}, v.ran()
	for i := range v.s.CPUs {
		c := &v.s.CPUs[i]
		who := ""
		if t := ran[c.CPU]; t != nil {
			who = stackshots[t.task.ID]
		} else if c.Flags&kcdata.CPURanKnown != 0 && c.RanTid != 0 {
			who = stackshots[uint64(c.RanTgid)]
		}
		if who != "" {
			had[c.CPU] = who
		}
	}
	return had
}

// oursWords says which CPUs stackshots had: those that a line counts are less by them.
func (l *load) oursWords() (out []string) {
	for _, who := range []string{itself, another} {
		n, first := 0, uint32(0)
		for cpu, by := range l.ours {
			if by == who {
				n, first = n+1, cpu
			}
		}
		switch n {
		case 0:
		case 1:
			out = append(out, fmt.Sprintf("%s had CPU %d", who, first))
		default:
			out = append(out, fmt.Sprintf("%s had %d of %s", who, n, show.Count(l.cpus, "CPU")))
		}
	}
	return out
}
