package latency

import (
	"fmt"
	"strings"

	"stackshot/internal/show"
)

func (p *page) taskCosts(c *Costs[TaskCost]) {
	head := []string{"total", "find", "head", "threads", "end", "other", "count", "per thread", "task"}
	costTable(p, "task", c, head, func(r *TaskCost) []string {
		return append(micros(r.TotalNs, r.FindNs, r.HeadNs, r.ThreadsNs, r.EndNs, r.OtherNs), fmt.Sprint(r.Threads), cell(r.PerThreadNs, show.Micros), r.Who.String())
	})
}

func (p *page) threadCosts(c *Costs[ThreadCost]) {
	head := []string{"total", "head", "stack", "rest", "items", "other", "frames", "thread"}
	costTable(p, "thread", c, head, func(r *ThreadCost) []string {
		return append(micros(r.TotalNs, r.HeadNs, r.StackNs, r.RestNs, r.ItemsNs, r.OtherNs), fmt.Sprint(r.Frames), r.Who.String())
	})
}

// costTable lists the slowest, with their parts in us.
func costTable[C any](p *page, noun string, c *Costs[C], head []string, row func(*C) []string) {
	p.heading("SLOWEST %sS, us", strings.ToUpper(noun))
	if c.Measured == 0 {
		p.Line("not measured (--latency %s)", noun)
		return
	}
	p.table(true, rowsOf(head, c.Slowest, row))
	p.more(c.Measured-len(c.Slowest), noun)
}

func micros(ns ...uint64) (cells []string) {
	for _, v := range ns {
		cells = append(cells, show.Micros(v))
	}
	return cells
}

// more says that a list was cut.
func (p *page) more(n int, noun string) {
	if n > 0 {
		p.Line("and %s (--top)", show.Count(n, "more "+noun))
	}
}
