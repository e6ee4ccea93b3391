package latency

import (
	"fmt"

	"stackshot/internal/show"
)

func (p *page) taskCosts(c *TaskCosts) {
	p.heading("SLOWEST TASKS, us")
	if c.Measured == 0 {
		p.line("not measured (--latency task)")
		return
	}
	t := table{named: true}
	t.row("total", "find", "head", "threads", "end", "other", "count", "per thread", "task")
	for _, r := range c.Slowest {
		each := "-"
		if r.PerThreadNs != nil {
			each = show.Micros(*r.PerThreadNs)
		}
		t.row(show.Micros(r.TotalNs), show.Micros(r.FindNs), show.Micros(r.HeadNs), show.Micros(r.ThreadsNs), show.Micros(r.EndNs), show.Micros(r.OtherNs),
			fmt.Sprint(r.Threads), each, r.Who.String())
	}
	t.write(p)
	p.more(c.Measured-len(c.Slowest), "task")
}

func (p *page) threadCosts(c *ThreadCosts) {
	p.heading("SLOWEST THREADS, us")
	if c.Measured == 0 {
		p.line("not measured (--latency thread)")
		return
	}
	t := table{named: true}
	t.row("total", "head", "stack", "rest", "items", "other", "frames", "thread")
	for _, r := range c.Slowest {
		t.row(show.Micros(r.TotalNs), show.Micros(r.HeadNs), show.Micros(r.StackNs), show.Micros(r.RestNs), show.Micros(r.ItemsNs), show.Micros(r.OtherNs),
			fmt.Sprint(r.Frames), r.Who.String())
	}
	t.write(p)
	p.more(c.Measured-len(c.Slowest), "thread")
}

// more says that a list was cut.
func (p *page) more(n int, noun string) {
	if n > 0 {
		p.line("and %s (--top)", show.Count(n, "more "+noun))
	}
}
