package latency

import (
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Phases says where one CPU's time went while it was held.
type Phases struct {
	kcdata.LinuxPhases
	RestNs int64 // total less all phases, limited to an int64; 0: the phases add up to the total
}

// phases are the phases in the order of time: each is one column of the table, one letter
// of the bar, and a key of the JSON.
var phases = [...]struct {
	name   string
	letter byte
	ns     func(p *kcdata.LinuxPhases) *uint64
}{
	{"enter", 'e', func(p *kcdata.LinuxPhases) *uint64 { return &p.EnterNs }},
	{"arrival", 'a', func(p *kcdata.LinuxPhases) *uint64 { return &p.ArrivalNs }},
	{"hold", 'h', func(p *kcdata.LinuxPhases) *uint64 { return &p.HoldNs }},
	{"census", 'c', func(p *kcdata.LinuxPhases) *uint64 { return &p.CensusNs }},
	{"queue", 'q', func(p *kcdata.LinuxPhases) *uint64 { return &p.QueueNs }},
	{"record", 'R', func(p *kcdata.LinuxPhases) *uint64 { return &p.RecordNs }},
	{"drain", 'd', func(p *kcdata.LinuxPhases) *uint64 { return &p.DrainNs }},
	{"verify", 'v', func(p *kcdata.LinuxPhases) *uint64 { return &p.VerifyNs }},
	{"release", 'r', func(p *kcdata.LinuxPhases) *uint64 { return &p.ReleaseNs }},
	{"exit", 'x', func(p *kcdata.LinuxPhases) *uint64 { return &p.ExitNs }},
}

func (p *Phases) list() (ns [len(phases)]uint64) {
	for i, ph := range phases {
		ns[i] = *ph.ns(&p.LinuxPhases)
	}
	return ns
}

// phasesOf computes the rest. The sum of hostile phases may be greater than the total.
func phasesOf(r *kcdata.LinuxPhases) Phases {
	p := Phases{LinuxPhases: *r}
	ns := p.list()
	if all := sum(ns[:]...); all > p.TotalNs {
		p.RestNs = -int64(min(all-p.TotalNs, 1<<63-1))
	} else {
		p.RestNs = int64(min(p.TotalNs-all, 1<<63-1))
	}
	return p
}

// sumPhases adds up the phases of all CPUs; nil without CPUs. A figure that some CPU did not
// measure has no sum.
func sumPhases(cpus []kcdata.LinuxPhases) *Phases {
	if len(cpus) == 0 {
		return nil
	}
	all := cpus[0]
	all.CPU = 0
	for i := range cpus[1:] {
		c := &cpus[i+1]
		for _, ph := range phases {
			*ph.ns(&all) = sum(*ph.ns(&all), *ph.ns(c))
		}
		all.TotalNs, all.UnwindNs = sum(all.TotalNs, c.TotalNs), sum(all.UnwindNs, c.UnwindNs)
		all.Cycles, all.Instrs = sum(all.Cycles, c.Cycles), sum(all.Instrs, c.Instrs)
		all.Present &= c.Present
	}
	out := phasesOf(&all)
	return &out
}

// unwind is the time of the kernel's unwinder; nil: not measured.
func (p *Phases) unwind() *uint64 {
	return show.Present(uint64(p.Present), kcdata.PhasesHaveUnwind, p.UnwindNs)
}

// hasCycles reports whether the machine has a PMU and let us use it.
func (p *Phases) hasCycles() bool { return p.Present&kcdata.PhasesHaveCycles != 0 }

// MarshalJSON writes the record's fields by their names.
func (p Phases) MarshalJSON() ([]byte, error) {
	out := show.Object{{"cpu", p.CPU}, {"total_ns", p.TotalNs}}
	for i, ns := range p.list() {
		out = append(out, [2]any{phases[i].name + "_ns", ns})
	}
	present := uint64(p.Present)
	return append(out, show.Object{
		{"rest_ns", p.RestNs}, {"unwind_ns", p.unwind()},
		{"cycles", show.Present(present, kcdata.PhasesHaveCycles, p.Cycles)}, {"instrs", show.Present(present, kcdata.PhasesHaveCycles, p.Instrs)},
	}...).MarshalJSON()
}

// phases writes the table of phases, a bar for each CPU, then the counters if the file has
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
	p.table(false, append(rows, phaseRow("sum", f.Sum, rest), shareRow(f.Sum)))
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

func shareRow(sum *Phases) []string {
	row := []string{"%"}
	for _, ns := range sum.list() {
		row = append(row, strings.TrimSuffix(show.Percent(ns, sum.TotalNs), "%"))
	}
	return row // of rest and total there is no share
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
