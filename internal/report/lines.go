package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"

	"stackshot/internal/show"
)

// lines writes a report line by line, keeps it within the terminal and counts the lines
// that a limited first screen leaves out.
type lines struct {
	show.Page
	w     *bufio.Writer // keeps the first error
	o     Options
	n     int      // lines so far
	rest  string   // the command that shows the rest
	apart bool     // the command has lines of its own
	held  []string // the lines of the first screen
	color string   // of the lines that follow; "" for none
	room  room
}

func newLines(w io.Writer, o Options) *lines {
	l := &lines{w: bufio.NewWriter(w), o: o, rest: show.Clean(cmp.Or(o.RestCommand, "stackshot report FILE"))}
	l.Page = show.Page{Width: o.Width, Put: l.put}
	l.room.Bytes = o.MaxBytes
	l.apart = o.Width > 0 && show.Cells(more(maxLines)+" "+l.rest) > o.Width
	return l
}

// maxLines is more than the lines of any report. It gives the greatest width of a tail.
const maxLines = 9_999_999

func more(n int) string { return fmt.Sprintf("... %d more lines:", n) }

// tail ends the first screen of a report that has n more lines. The reader is to copy the
// command, so it is never cut: if it does not fit beside the words, it gets lines of its
// own.
func (l *lines) tail(n int) []string {
	if l.apart {
		return []string{show.Fit(more(n), l.Width), l.rest}
	}
	return []string{more(n) + " " + l.rest}
}

// tailRows is how many rows of the terminal the tail takes.
func (l *lines) tailRows() int {
	if !l.apart {
		return 1
	}
	return 2 + max(show.Cells(l.rest)-1, 0)/l.Width
}

// colored makes the lines that f writes stand out.
func (l *lines) colored(color string, f func()) {
	if l.o.Color {
		l.color = color
	}
	f()
	l.color = ""
}

// put takes one line of the report. It holds back the lines of a first screen: how many
// of them are shown depends on whether more follow, and those are only counted.
func (l *lines) put(s string) {
	l.n++
	s = show.Paint(l.color, s)
	if limit := l.o.FirstScreen; limit <= 0 {
		l.write(s)
	} else if l.n <= limit {
		l.held = append(l.held, s)
	}
}

func (l *lines) write(s string) {
	l.room.used += int64(len(s)) + 1
	l.w.WriteString(s)
	l.w.WriteByte('\n')
}

// close ends the report; if a first screen does not show all lines, the tail ends it. Its
// error is the writer's first, else a *CutError.
func (l *lines) close() error {
	if limit := l.o.FirstScreen; limit > 0 && l.n > limit {
		shown := max(limit-l.tailRows(), 0)
		l.held = append(l.held[:shown], l.tail(l.n-shown)...)
	}
	for _, s := range l.held {
		l.write(s)
	}
	return l.room.flush(l.w)
}

// Limits for one thread: a small file may expand to very much text.
const (
	maxUserFrames  = 1 << 14 // of a user stack, inlined functions counted
	maxThreadNames = 4 << 20 // bytes of names in a stack, as JSON
)

// CutError says what a report leaves out because it reached Options.MaxBytes. All the
// rest is written, and the report is well formed.
type CutError struct {
	Threads  int   // that are not shown
	Mappings int   // that are not shown; of JSON only
	Bytes    int64 // the limit
}

func (e *CutError) Error() string {
	var what show.Parts
	what.If(e.Threads > 0, "%s", show.Count(e.Threads, "thread"))
	what.If(e.Mappings > 0, "%s", show.Count(e.Mappings, "mapping"))
	return fmt.Sprintf("%s left out: the report would be longer than %s", what.Join(" and "), show.Size(uint64(e.Bytes)))
}

// room counts what a report has written and what it leaves out.
type room struct {
	CutError       // Bytes is Options.MaxBytes; 0: no limit
	used     int64 // bytes written
}

func (r *room) full() bool { return r.Bytes > 0 && r.used >= r.Bytes }

// err is nil if nothing was left out.
func (r *room) err() error {
	if r.Threads+r.Mappings == 0 {
		return nil
	}
	cut := r.CutError
	return &cut
}

// flush ends a report. Its error is the writer's first, else err's.
func (r *room) flush(w *bufio.Writer) error {
	if err := w.Flush(); err != nil {
		return err
	}
	return r.err()
}
