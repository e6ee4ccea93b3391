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
