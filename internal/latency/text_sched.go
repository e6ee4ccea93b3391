package latency

import (
	"fmt"
	"strings"

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
	t := table{named: true}
	t.row("total", "times run", "mean", "thread")
	for _, r := range d.Top {
		t.row(show.Fine(r.TotalNs), show.Thousands(r.Times), show.Fine(r.MeanNs), r.Who.String())
	}
	t.write(p)
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
	var but []string
	if a.About > 0 {
		but = append(but, fmt.Sprintf("since about when of %d, by another CPU's clock", a.About))
	}
	if a.Unknown > 0 {
		but = append(but, fmt.Sprintf("since when is not known of %d", a.Unknown))
	}
	if len(but) > 0 {
		s += " (" + strings.Join(but, "; ") + ")"
	}
	if len(a.Longest) == 0 {
		p.Line("%s", s)
		return
	}
	p.Line("%s:", s)
	t := table{named: true}
	t.row("at most", "CPU", "thread")
	for _, r := range a.Longest {
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
		t.row(age, fmt.Sprint(r.CPU), who)
	}
	t.write(p)
	p.more(a.Threads-len(a.Longest), "thread")
}
