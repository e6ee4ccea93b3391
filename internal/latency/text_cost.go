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
			each = micros(*r.PerThreadNs)
		}
		t.row(micros(r.TotalNs), micros(r.FindNs), micros(r.HeadNs), micros(r.ThreadsNs), micros(r.EndNs), micros(r.OtherNs),
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
		t.row(micros(r.TotalNs), micros(r.HeadNs), micros(r.StackNs), micros(r.RestNs), micros(r.ItemsNs), micros(r.OtherNs),
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
