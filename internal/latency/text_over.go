package latency

import (
	"fmt"

	"stackshot/internal/show"
)

// many writes a line per file, then the distributions over them.
func (p *page) many(files []*Figures) {
	p.Line("latency of %s", show.Count(len(files), "file"))
	p.Line("")
	t := table{named: true}
	t.row("stopped", "window", "skew", "a thread", "threads", "ran", "tries", "wait", "D", "file")
	for _, f := range files {
		t.row(fileRow(f)...)
	}
	t.write(p)
	p.Words("", "ran: threads that ran between their record and its check; wait, D: the longest that a thread had waited for a CPU or been in D, at most")
	p.heading("DISTRIBUTIONS over %s", show.Count(len(files), "file"))
	p.dists(Over(files))
}

func fileRow(f *Figures) []string {
	row := []string{"-", "-", "-", "-", show.Thousands(uint64(f.Machine.Threads)), "-", "-", longest(&f.Sched.Waiting), longest(&f.Sched.Blocked), f.File}
	if f.Pause == nil {
		return row
	}
	if f.Pause.Stopped {
		row[0], row[1], row[2] = show.Fine(f.Pause.StoppedNs), show.Fine(f.Pause.WindowNs), show.Fine(f.Pause.ArrivalNs)
	}
	if f.Pause.Cost != nil {
		row[3] = show.Fine(f.Pause.Cost.RecordNs)
	}
	if f.Pause.Ran != nil {
		row[5] = show.Thousands(uint64(f.Pause.Ran.Ran))
	}
	if f.Pause.TryCount > 0 {
		row[6] = fmt.Sprint(f.Pause.TryCount)
	}
	return row
}

func longest(a *Ages) string {
	if a.Dist.Count == 0 {
		return "-"
	}
	return show.Fine(a.Dist.Max)
}
