package latency

import (
	"io"
	"strings"

	"stackshot/internal/show"
)

// TextOptions choose how figures are written.
type TextOptions struct {
	Width int // of the terminal, in cells: longer lines are cut. 0: no limit
	Top   int // entries in lists of names
}

// Text writes the figures of one file in full, those of several as a line each
// and their distributions. Errors are the writer's.
func Text(w io.Writer, files []*Figures, o TextOptions) error {
	p := newPage(w, o.Width)
	if len(files) == 1 {
		p.file(files[0], o)
	} else {
		p.many(files)
	}
	return p.w.Flush()
}

func (p *page) file(f *Figures, o TextOptions) {
	p.Words("", "%s", f.Machine.Full())
	if n := f.Machine.Problems; n > 0 {
		p.Words("", "!! the file contradicts itself in %s: stackshot report says where", show.Count(n, "place"))
	}
	if f.Pause == nil {
		p.Line("The file does not say how the capture went.")
	} else {
		p.pause(f.Pause, &f.Machine, o)
	}
	p.taskCosts(&f.Tasks)
	p.threadCosts(&f.Threads)
	p.distributions(f)
	p.sched(&f.Sched)
}

// distributions of what was measured in one file.
func (p *page) distributions(f *Figures) {
	var all []Dist
	all = append(all, f.Tasks.Dists...)
	all = append(all, f.Threads.Dists...)
	all = append(all, f.Sched.RunDelay.Dists...)
	all = append(all, f.Sched.Waiting.Dist, f.Sched.Blocked.Dist, f.Sched.Sleeping.Dist)
	p.heading("DISTRIBUTIONS over tasks and threads")
	p.dists(all)
}

// dists leaves empty distributions out: they would be rows of zeros.
func (p *page) dists(all []Dist) {
	t := table{named: true}
	t.row("count", "p50", "p90", "p99", "max", "of")
	for _, d := range all {
		if d.Count == 0 {
			continue
		}
		write := show.Thousands
		if d.Unit == UnitNs {
			write = show.Fine
		}
		t.row(show.Thousands(uint64(d.Count)), write(d.P50), write(d.P90), write(d.P99), write(d.Max), distName(d.Name))
	}
	if len(t.rows) == 1 {
		p.Line("nothing was measured")
		return
	}
	t.write(p)
}

// distName is the name of a distribution without its unit, in words.
func distName(name string) string {
	return strings.ReplaceAll(strings.TrimSuffix(name, "_ns"), "_", " ")
}
