package latency

import (
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/show"
)

// phases is the table of phases, a bar per CPU, then counters where there are
// any.
func (p *page) phases(f *Pause) {
	if f.Sum == nil {
		p.Line("phases not measured")
		return
	}
	p.heading("PHASES of the pause per CPU, us")
	rest := f.Sum.RestNs != 0 || slices.ContainsFunc(f.Phases, func(c Phases) bool { return c.RestNs != 0 })
	head := []string{"CPU"}
	for _, ph := range phases {
		head = append(head, ph.name)
	}
	if rest {
		head = append(head, "rest")
	}
	rows := rowsOf(append(head, "total"), f.Phases, func(c *Phases) []string { return phaseRow(fmt.Sprint(c.CPU), c, rest) })
	p.table(false, append(rows, phaseRow("sum", f.Sum, rest), shareRow(f.Sum, rest)))
	p.bars(f.Phases)
	p.counters(f)
}

func phaseRow(label string, c *Phases, rest bool) []string {
	list := c.list()
	row := append([]string{label}, micros(list[:]...)...)
	if rest {
		row = append(row, signed(c.RestNs))
	}
	return append(row, show.Micros(c.TotalNs))
}

func signed(ns int64) string {
	if ns < 0 {
		return "-" + show.Micros(uint64(-ns))
	}
	return show.Micros(uint64(ns))
}

func shareRow(sum *Phases, rest bool) []string {
	row := []string{"%"}
	for _, ns := range sum.list() {
		row = append(row, strings.TrimSuffix(show.Percent(ns, sum.TotalNs), "%"))
	}
	if rest {
		row = append(row, "")
	}
	return append(row, "")
}

// counters are the figures that only some captures have.
func (p *page) counters(f *Pause) {
	if !slices.ContainsFunc(f.Phases, func(c Phases) bool { return c.unwind() != nil || c.hasCycles() }) {
		return
	}
	p.Line("")
	head := []string{"CPU", "unwind us", "of record", "cycles", "instructions", "per cycle"}
	rows := rowsOf(head, f.Phases, func(c *Phases) []string { return counterRow(fmt.Sprint(c.CPU), c) })
	p.table(false, append(rows, counterRow("sum", f.Sum)))
}

func counterRow(label string, c *Phases) []string {
	row := []string{label, "-", "-", "-", "-", "-"}
	if c.unwind() != nil {
		row[1], row[2] = show.Micros(c.UnwindNs), show.Percent(c.UnwindNs, c.RecordNs)
	}
	if c.hasCycles() {
		row[3], row[4] = show.Thousands(c.Cycles), show.Thousands(c.Instrs)
		if c.Cycles > 0 {
			row[5] = fmt.Sprintf("%.2f", float64(c.Instrs)/float64(c.Cycles))
		}
	}
	return row
}
