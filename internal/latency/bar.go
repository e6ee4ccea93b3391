package latency

import (
	"cmp"
	"fmt"
	"math/bits"
	"strings"

	"stackshot/internal/show"
)

const (
	plainWidth = 80 // of a line if there is no terminal, in cells
	minBar     = 10 // cells
)

// bars draws one line per CPU, a letter per phase, all to one scale.
func (p *page) bars(cpus []Phases) {
	longest, label := uint64(0), 0
	for i := range cpus {
		longest = max(longest, cpus[i].extent())
		label = max(label, len(fmt.Sprint(cpus[i].CPU)))
	}
	if longest == 0 {
		return
	}
	cells := max(cmp.Or(p.Width, plainWidth)-label-len("CPU  ||"), minBar)
	p.Line("")
	for i := range cpus {
		p.Line("CPU %*d |%s|", label, cpus[i].CPU, cpus[i].bar(cells, longest))
	}
	p.Words("", "%s", legend(cells, longest))
}

// extent is what the bar shows: the total, or the sum of the phases if that is longer.
func (c *Phases) extent() uint64 {
	if c.RestNs < 0 {
		return sum(c.TotalNs, uint64(-c.RestNs))
	}
	return c.TotalNs
}

// bar is exactly cells wide. Each phase ends where the sum of the phases so far
// ends, so rounding errors do not add up. Time that is in no phase is drawn as '?'.
func (c *Phases) bar(cells int, longest uint64) string {
	var b strings.Builder
	done := uint64(0)
	draw := func(letter byte, ns uint64) {
		done = sum(done, ns)
		if n := scale(min(done, longest), longest, cells) - b.Len(); n > 0 {
			b.WriteString(strings.Repeat(string(letter), n))
		}
	}
	for i, ns := range c.list() {
		draw(phases[i].letter, ns)
	}
	draw('?', c.extent()-min(c.extent(), done))
	return b.String() + strings.Repeat(" ", cells-b.Len())
}

// scale returns part/whole of cells, rounded. part is at most whole, and whole is not 0. The
// product may need 128 bits.
func scale(part, whole uint64, cells int) int {
	hi, lo := bits.Mul64(part, uint64(cells))
	lo, carry := bits.Add64(lo, whole/2, 0)
	q, _ := bits.Div64(hi+carry, lo, whole)
	return int(min(q, uint64(cells)))
}

// legend explains the letters and the scale.
func legend(cells int, longest uint64) string {
	var parts show.Parts
	for _, ph := range phases {
		parts.Add("%c=%s", ph.letter, ph.name)
	}
	return fmt.Sprintf("%s ?=rest; %d cells are %s", parts.Join(" "), cells, show.Duration(longest))
}
