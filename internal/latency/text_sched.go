package latency

import (
	"fmt"

	"stackshot/internal/show"
)

func (p *page) sched(s *Sched) {
	p.heading("SCHEDULING LATENCY of %s (left out: %d of our own, %d of idle CPUs)", show.Count(s.Threads, "thread"), s.SelfLeft, s.IdleLeft)
	p.runDelay(&s.RunDelay)
	p.ages("waiting for a CPU", &s.Waiting)
	p.ages("in D", &s.Blocked)
	p.ages("sleeping", &s.Sleeping)
}

func (p *page) runDelay(d *RunDelay) {
	if d.Known == 0 {
		p.Line("run-queue delay: not in the file")
		return
	}
	p.Line("run-queue delay since each thread began:")
	p.table(true, rowsOf([]string{"total", "times run", "mean", "thread"}, d.Top, func(r *ThreadDelay) []string {
		return []string{show.Fine(r.TotalNs), show.Thousands(r.Times), show.Fine(r.MeanNs), r.Who.String()}
	}))
	p.more(d.Known-len(d.Top), "thread")
}

// ages writes who has been longest in one class, at the stop.
func (p *page) ages(class string, a *Ages) {
	p.Line("")
	if a.Threads == 0 {
		p.Line("no thread %s", class)
		return
	}
	s := show.Count(a.Threads, "thread") + " " + class
	var but show.Parts
	but.If(a.About > 0, "since about when of %d, by another CPU's clock", a.About)
	but.If(a.Unknown > 0, "since when is not known of %d", a.Unknown)
	if len(but) > 0 {
		s += " (" + but.Join("; ") + ")"
	}
	if len(a.Longest) == 0 {
		p.Line("%s", s)
		return
	}
	p.Line("%s:", s)
	p.table(true, rowsOf([]string{"at most", "CPU", "thread"}, a.Longest, func(r *ThreadAge) []string {
		age, who := "unknown", r.Who.String()
		if r.age.Known {
			age = show.Fine(r.age.Ns)
		}
		if r.age.About {
			age = "about " + age
		}
		if r.Place != "" {
			who += " in " + r.Place
		}
		return []string{age, fmt.Sprint(r.CPU), who}
	}))
	p.more(a.Threads-len(a.Longest), "thread")
}
