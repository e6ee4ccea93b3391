package latency

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"stackshot/internal/show"
)

// page is where a text goes. The bufio.Writer keeps the first error.
type page struct {
	show.Page
	w *bufio.Writer
}

func newPage(w io.Writer, width int) *page {
	b := bufio.NewWriter(w)
	return &page{show.Page{Width: width, Put: func(line string) { fmt.Fprintln(b, line) }}, b}
}

// heading begins a section.
func (p *page) heading(format string, args ...any) {
	p.Line("")
	p.Line("== %s", fmt.Sprintf(format, args...))
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
		p.Line("%s", b.String())
	}
}
