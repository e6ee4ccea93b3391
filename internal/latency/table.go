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

// rowsOf is a table: the head, then a row for each record.
func rowsOf[R any](head []string, records []R, row func(*R) []string) [][]string {
	rows := [][]string{head}
	for i := range records {
		rows = append(rows, row(&records[i]))
	}
	return rows
}

// table writes rows of cells, of which the first is the head. Columns are aligned to the
// right. If the last column is named, it holds names and is aligned to the left: a narrow
// terminal cuts them.
func (p *page) table(named bool, rows [][]string) {
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], show.Cells(c))
		}
	}
	for _, r := range rows {
		for i, c := range r {
			pad := strings.Repeat(" ", widths[i]-show.Cells(c))
			if named && i == len(widths)-1 {
				pad = " "
			}
			r[i] = pad + c
		}
		p.Line("%s", strings.Join(r, " "))
	}
}

// cell writes a figure, and a dash if it is missing.
func cell(figure *uint64, write func(uint64) string) string {
	if figure == nil {
		return "-"
	}
	return write(*figure)
}
