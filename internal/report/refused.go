package report

import (
	"maps"
	"slices"
	"strings"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// refusedEnd ends the reason of a file that only its owner or root may read.
const refusedEnd = ": permission denied"

// unread are the reasons why something of a task was not read, clean. Refusals are not among
// them: an ordinary user's file has them of nearly all tasks, and one line counts them.
func unread(t *kcdata.Task) (out []string) {
	for _, f := range t.EnrichFailed {
		if !strings.HasSuffix(f, refusedEnd) {
			out = append(out, show.Clean(f))
		}
	}
	return out
}

// refusals is the line that counts what may not be read; "" if there is nothing.
func refusals(s *kcdata.Snapshot) string {
	tasks, what := 0, map[string]bool{}
	for _, t := range s.Tasks {
		some := false
		for _, f := range t.EnrichFailed {
			if name, ok := strings.CutSuffix(f, refusedEnd); ok {
				what[show.Clean(name)], some = true, true
			}
		}
		if some {
			tasks++
		}
	}
	if tasks == 0 {
		return ""
	}
	names := show.AtMost(maxSkipped, slices.Sorted(maps.Keys(what)), func(n int) string { return "and " + show.Count(n, "other file") })
	return "not read of " + show.Count(tasks, "task") + refusedEnd + " (" + strings.Join(names, ", ") + ")"
}
