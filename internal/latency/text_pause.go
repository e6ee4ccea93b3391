package latency

import (
	"fmt"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/show"
)

// pause writes how long the pause was, how close the file is to one instant, where the time
// went, and what the capture took in tries and memory.
func (p *page) pause(f *Pause, m *account.Machine, o TextOptions) {
	p.Words("", "%s", f.Full(m))
	if s := account.Broken(f.StopBroken); s != "" {
		p.Words("", "!! %s", s)
	}
	p.atomicity(f.Ran, o.Top)
	if f.Cost != nil {
		p.Words("", "%s", costText(f.Cost))
	}
	p.phases(f)
	p.work(f.CPUs)
	p.tries(f)
	p.arenas(f.Arenas)
}

func costText(c *Cost) string {
	s := fmt.Sprintf("a thread: %s of recording on one CPU, %s of pause (%s threads recorded)", show.Fine(c.RecordNs), show.Fine(c.StoppedNs), show.Thousands(c.Threads))
	if c.UnwindShare == nil {
		return s + "; unwinding not measured (--latency thread)"
	}
	return s + fmt.Sprintf("; unwinding %s, %.1f%% of recording", show.Fine(*c.UnwindNs), 100**c.UnwindShare)
}

// atomicity writes the sentence on atomicity, then the threads that ran.
func (p *page) atomicity(a *account.Atomicity, top int) {
	if a == nil {
		p.Words("", "atomicity not measured: no thread was read twice")
		return
	}
	p.Words("", "%s", a.Full())
	for i, r := range a.Threads {
		if i == top {
			p.Line("  and %d more", len(a.Threads)-i)
			break
		}
		p.Line("  %s: ran %s, context switches %s", r.Who, show.Fine(r.RuntimeNs), show.Thousands(r.Switches))
	}
}

// work writes what each stopped CPU did.
func (p *page) work(cpus []account.Work) {
	if len(cpus) == 0 {
		return
	}
	p.heading("WORK per CPU")
	p.table(false, rowsOf([]string{"CPU", "arrived after", "tasks", "threads", "bytes", "spill"}, cpus, func(c *account.Work) []string {
		return []string{
			fmt.Sprint(c.CPU), cell(c.AfterNs, show.Fine), show.Thousands(uint64(c.Tasks)), show.Thousands(uint64(c.Threads)),
			show.Size(c.Bytes), show.Size(c.SpillBytes),
		}
	}))
}

// tries writes a table if there was more than one try, or if the only one did not make a whole
// file.
func (p *page) tries(f *Pause) {
	switch {
	case f.TryCount > 1 && len(f.Tries) == 0:
		p.Line("%d tries; what the others cost is not in the file", f.TryCount)
		return
	case len(f.Tries) < 2 && (len(f.Tries) == 0 || f.Tries[0].Outcome == "whole"):
		return
	}
	p.heading("TRIES: %d, lost on retries %s stopped, %s between them", len(f.Tries), show.Fine(*f.LostNs), show.Fine(*f.BetweenNs))
	n := 0
	p.table(true, rowsOf([]string{"try", "stopped", "window", "ran after it", "buffer", "used", "outcome"}, f.Tries, func(r *Try) []string {
		n++
		return []string{
			fmt.Sprint(n), show.Fine(r.StoppedNs), show.Fine(r.WindowNs), show.Fine(r.RestNs),
			show.Size(r.BufferSize), show.Size(r.BufferUsed), strings.ReplaceAll(r.Outcome, "_", " "),
		}
	}))
}

func (p *page) arenas(arenas []Arena) {
	if len(arenas) == 0 {
		return
	}
	p.heading("MEMORY per cluster")
	head := []string{"cluster", "size", "used", "spill out", "spill in", "freed", "reused", "overhead", "allocs", "refused"}
	p.table(false, rowsOf(head, arenas, func(a *Arena) []string {
		return []string{
			fmt.Sprint(a.Cluster), show.Size(a.Size), show.Size(a.Used), show.Size(a.SpillOut), show.Size(a.SpillIn),
			show.Size(a.FreedSize), show.Size(a.Reused), show.Size(a.Overhead), show.Thousands(a.Allocs), show.Thousands(a.Refused),
		}
	}))
}
