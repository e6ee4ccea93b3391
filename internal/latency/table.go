package latency

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"stackshot/internal/show"
)

// page writes lines of at most width cells. The bufio.Writer keeps the first
// error.
type page struct {
	w     *bufio.Writer
	width int // 0: no limit
}

func newPage(w io.Writer, width int) *page { return &page{bufio.NewWriter(w), width} }

// line writes one line, cut to the width.
func (p *page) line(format string, args ...any) {
	p.w.WriteString(show.Fit(strings.TrimRight(fmt.Sprintf(format, args...), " "), p.width))
	p.w.WriteByte('\n')
}

// words writes a sentence, wrapped: no word of it may be lost.
func (p *page) words(format string, args ...any) {
	for _, s := range show.Wrap(fmt.Sprintf(format, args...), p.width) {
		p.w.WriteString(s)
		p.w.WriteByte('\n')
	}
}

// heading begins a section.
func (p *page) heading(format string, args ...any) {
	p.line("")
	p.line("== %s", fmt.Sprintf(format, args...))
}

// table holds rows of cells; the first row is the head. All columns are aligned
// to the right but, where named, the last: it holds names, and a narrow
// terminal cuts them.
type table struct {
	rows  [][]string
	named bool
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(p *page) {
	var widths []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], show.Cells(c))
		}
	}
	for _, r := range t.rows {
		var b strings.Builder
		for i, c := range r {
			if i > 0 {
				b.WriteByte(' ')
			}
			pad := strings.Repeat(" ", widths[i]-show.Cells(c))
			if t.named && i == len(widths)-1 {
				pad = " "
			}
			b.WriteString(pad + c)
		}
		p.line("%s", b.String())
	}
}

// micros writes ns as a number of microseconds.
func micros(ns uint64) string {
	if ns < 100_000 {
		return fmt.Sprintf("%.1f", float64(ns)/1e3)
	}
	return fmt.Sprintf("%.0f", float64(ns)/1e3)
}

// fine writes short durations exactly enough to compare them, long ones as the
// reports do.
func fine(ns uint64) string {
	switch {
	case ns < 1000:
		return fmt.Sprintf("%d ns", ns)
	case ns < 10_000:
		return fmt.Sprintf("%.2f us", float64(ns)/1e3)
	case ns < 1_000_000:
		return micros(ns) + " us"
	case ns < 10_000_000:
		return fmt.Sprintf("%.2f ms", float64(ns)/1e6)
	}
	return show.Duration(ns)
}

// percent writes the share of part in whole; "-" where there is no whole.
func percent(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}
