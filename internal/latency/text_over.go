package latency

import (
	"cmp"
	"fmt"
	"stackshot/internal/show"
)

// many writes a line per file, then the distributions over them.
func (p *page) many(files []*Figures) {
	p.Line("latency of %s", show.Count(len(files), "file"))
	p.Line("")
	head := []string{"stopped", "window", "skew", "a thread", "threads", "ran", "tries", "wait", "D", "file"}
	p.table(true, rowsOf(head, files, func(f **Figures) []string { return fileRow(*f) }))
	p.Words("", "ran: threads that ran between their record and its check; wait, D: the longest that a thread had waited for a CPU or been in D, at most")
	p.heading("DISTRIBUTIONS over %s", show.Count(len(files), "file"))
	p.dists(Over(files))
}

func fileRow(f *Figures) []string {
	p := cmp.Or(f.Pause, &Pause{}) // one without figures
	return []string{
		cell(p.held(p.StoppedNs), show.Fine), cell(p.held(p.WindowNs), show.Fine), cell(p.held(p.ArrivalNs), show.Fine),
		cell(p.recordNs(), show.Fine), show.Thousands(uint64(f.Machine.Threads)), cell(p.threadsRan(), show.Thousands),
		cell(p.triesMade(), func(n uint64) string { return fmt.Sprint(n) }), longest(&f.Sched.Waiting), longest(&f.Sched.Blocked), f.File,
	}
}

func longest(a *Ages) string {
	if a.Dist.Count == 0 {
		return "-"
	}
	return show.Fine(a.Dist.Max)
}
