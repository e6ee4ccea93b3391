package report

import (
	"bufio"
	"fmt"
	"io"

	"stackshot/internal/show"
)

// lines writes a report line by line and keeps it within the terminal.
type lines struct {
	show.Page
	w     *bufio.Writer // keeps the first error
	o     Options
	n     int    // lines so far
	color string // of the lines that follow; "" for none
	room  room
}

func newLines(w io.Writer, o Options) *lines {
	l := &lines{w: bufio.NewWriter(w), o: o}
	l.Page = show.Page{Width: o.Width, Wrap: true, Put: l.put}
	l.room.Bytes = o.MaxBytes
	return l
}

// colored makes the lines that f writes stand out.
func (l *lines) colored(color string, f func()) {
	if l.o.Color {
		l.color = color
	}
	f()
	l.color = ""
}

// put takes one line of the report.
func (l *lines) put(s string) {
	l.n++
	s = show.Paint(l.color, s)
	l.room.used += int64(len(s)) + 1
	l.w.WriteString(s)
	l.w.WriteByte('\n')
}

// close ends the report. Its error is the writer's first, else a *CutError.
func (l *lines) close() error { return l.room.flush(l.w) }

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
