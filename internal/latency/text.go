package latency

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"stackshot/internal/show"
)

// TextOptions choose how figures are written.
type TextOptions struct {
	Width int    // of the terminal, in cells: longer lines are cut. 0: no limit
	Top   int    // entries in lists of names
	Waits *Waits // of the files; nil: nothing of it is written
}

// Text writes the figures of one file in full; of several files it writes one line each and
// their distributions. Errors are the writer's.
func Text(w io.Writer, files []*Figures, o TextOptions) error {
	p := newPage(w, o.Width)
	if len(files) == 1 {
		p.file(files[0], o)
	} else {
		p.many(files)
		if o.Waits != nil {
			p.waits(o.Waits, o.Top)
		}
	}
	p.notAsked(files)
	return p.w.Flush()
}

// notAsked ends the text: how many threads were left out.
func (p *page) notAsked(files []*Figures) {
	out, all := 0, 0
	for _, f := range files {
		out += f.Sched.NotAsked
		all += f.Machine.Threads
	}
	if out > 0 {
		p.Line("")
		p.Words("", "%d of %d threads not asked for: the figures of tasks and threads are without them, pauses are of the whole machine", out, all)
	}
}

func (p *page) file(f *Figures, o TextOptions) {
	p.Words("", "%s", f.Machine.Full())
	if n := f.Machine.Problems; n > 0 {
		p.Words("", "!! %s with the file: stackshot report says more", show.Count(n, "problem"))
	}
	if f.Pause == nil {
		p.Line("The file does not say how the capture went.")
	} else {
		p.pause(f.Pause, &f.Machine, o)
	}
	p.taskCosts(&f.Tasks)
	p.threadCosts(&f.Threads)
	p.distributions(f)
	p.sched(&f.Sched)
}

// distributions writes those of the figures of one file.
func (p *page) distributions(f *Figures) {
	p.heading("DISTRIBUTIONS over tasks and threads")
	ages := []Dist{f.Sched.Waiting.Dist, f.Sched.Blocked.Dist, f.Sched.Sleeping.Dist}
	p.dists(slices.Concat(f.Tasks.Dists, f.Threads.Dists, f.Sched.RunDelay.Dists, ages))
}

// dists writes a table of distributions. It leaves empty ones out: they would be rows of
// zeros.
func (p *page) dists(all []Dist) {
	all = slices.DeleteFunc(slices.Clone(all), func(d Dist) bool { return d.Count == 0 })
	if len(all) == 0 {
		p.Line("nothing was measured")
		return
	}
	p.table(true, rowsOf([]string{"count", "p50", "p90", "p99", "max", "of"}, all, func(d *Dist) []string {
		write := show.Thousands
		if d.Unit == UnitNs {
			write = show.Fine
		}
		name := strings.ReplaceAll(strings.TrimSuffix(d.Name, "_ns"), "_", " ")
		return []string{show.Thousands(uint64(d.Count)), write(d.P50), write(d.P90), write(d.P99), write(d.Max), name}
	}))
}

// page is a text that is being written. The bufio.Writer keeps the first error.
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

// rowsOf makes a table: the head, then a row for each record.
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

// cell writes a figure, or a dash if it is missing.
func cell(figure *uint64, write func(uint64) string) string {
	if figure == nil {
		return "-"
	}
	return write(*figure)
}
