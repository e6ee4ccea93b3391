package latency

import (
	"fmt"
	"strings"

	"stackshot/internal/show"
)

// pause writes how long, how much of one instant, where the time went, what it
// cost in tries and memory.
func (p *page) pause(f *Pause, m *Machine, o TextOptions) {
	p.words("%s", pauseText(f, m))
	if f.StopBroken > 0 {
		p.words("!! the stop was broken %s", show.Count(int(f.StopBroken), "time"))
	}
	p.instant(f.Ran, o.Top)
	if f.Cost != nil {
		p.words("%s", costText(f.Cost))
	}
	p.phases(f)
	p.work(f.CPUs)
	p.tries(f)
	p.arenas(f.Arenas)
}

func pauseText(f *Pause, m *Machine) string {
	if !f.Stopped {
		return "nothing was stopped; the capture took " + show.Duration(f.ElapsedNs)
	}
	skew := "arrival skew " + fine(f.ArrivalNs)
	if f.LastCPU != nil {
		skew += fmt.Sprintf(" (CPU %d last)", *f.LastCPU)
	}
	s := fmt.Sprintf("stopped for %s, %d of %s; window %s, %s, census %s, release %s",
		fine(f.StoppedNs), m.Stopped, show.Count(m.CPUs, "CPU"), fine(f.WindowNs), skew, fine(f.CensusNs), fine(f.ReleaseNs))
	if f.ToStopNs != nil {
		s += "; request to stop " + fine(*f.ToStopNs)
	}
	return s
}

func costText(c *Cost) string {
	s := fmt.Sprintf("a thread: %s of recording on one CPU, %s of pause (%s threads recorded)", fine(c.RecordNs), fine(c.StoppedNs), show.Thousands(c.Threads))
	if c.UnwindShare == nil {
		return s + "; unwinding not measured (--latency thread)"
	}
	return s + fmt.Sprintf("; unwinding %s, %.1f%% of recording", fine(*c.UnwindNs), 100**c.UnwindShare)
}

// instant is the line about atomicity, then who ran.
func (p *page) instant(a *OneInstant, top int) {
	if a == nil {
		p.words("atomicity not measured: no thread was read twice")
		return
	}
	p.words("%s", instantText(a))
	for i, r := range a.Threads {
		if i == top {
			p.line("  and %d more", len(a.Threads)-i)
			break
		}
		p.line("  %s: ran %s, context switches %s", r.Who, fine(r.RuntimeNs), show.Thousands(r.Switches))
	}
}

func instantText(a *OneInstant) string {
	s := fmt.Sprintf("%s of %s threads ran ", show.Thousands(uint64(a.Ran)), show.Thousands(uint64(a.Compared)))
	switch a.Method {
	case "in_window":
		s += fmt.Sprintf("during the window (second pass %s, span %s)", fine(a.VerifyNs), fine(a.SpanNs))
	case "after":
		s += fmt.Sprintf("between their record and a second reading (span %s)", fine(a.SpanNs))
	default:
		s += fmt.Sprintf("between two readings (span %s)", fine(a.SpanNs))
	}
	if a.Gone > 0 {
		s += fmt.Sprintf("; %s gone at the second reading", show.Thousands(uint64(a.Gone)))
	}
	if a.Missed > 0 {
		s += fmt.Sprintf("; %s could not be read again", show.Thousands(uint64(a.Missed)))
	}
	return s
}

// work is what each stopped CPU did.
func (p *page) work(cpus []Work) {
	if len(cpus) == 0 {
		return
	}
	p.heading("WORK per CPU")
	t := table{}
	t.row("CPU", "arrived after", "tasks", "threads", "bytes", "spill")
	for _, c := range cpus {
		after := "-"
		if c.AfterNs != nil {
			after = fine(*c.AfterNs)
		}
		t.row(fmt.Sprint(c.CPU), after, show.Thousands(uint64(c.Tasks)), show.Thousands(uint64(c.Threads)), show.Size(c.Bytes), show.Size(c.SpillBytes))
	}
	t.write(p)
}

// tries stands only where there was more than one, or none of it is known.
func (p *page) tries(f *Pause) {
	switch {
	case f.TryCount > 1 && len(f.Tries) == 0:
		p.line("%d tries; what the others cost is not in the file", f.TryCount)
		return
	case len(f.Tries) < 2 && (len(f.Tries) == 0 || f.Tries[0].Outcome == "whole"):
		return
	}
	p.heading("TRIES: %d, lost on retries %s stopped, %s between them", len(f.Tries), fine(*f.LostNs), fine(*f.BetweenNs))
	t := table{named: true}
	t.row("try", "stopped", "window", "ran after it", "buffer", "used", "outcome")
	for i, r := range f.Tries {
		t.row(fmt.Sprint(i+1), fine(r.StoppedNs), fine(r.WindowNs), fine(r.RestNs), show.Size(r.BufferSize), show.Size(r.BufferUsed), strings.ReplaceAll(r.Outcome, "_", " "))
	}
	t.write(p)
}

func (p *page) arenas(arenas []Arena) {
	if len(arenas) == 0 {
		return
	}
	p.heading("MEMORY per cluster")
	t := table{}
	t.row("cluster", "size", "used", "spill out", "spill in", "freed", "reused", "overhead", "allocs", "refused")
	for _, a := range arenas {
		t.row(fmt.Sprint(a.Cluster), show.Size(a.Size), show.Size(a.Used), show.Size(a.SpillOut), show.Size(a.SpillIn),
			show.Size(a.FreedSize), show.Size(a.Reused), show.Size(a.Overhead), show.Thousands(a.Allocs), show.Thousands(a.Refused))
	}
	t.write(p)
}
