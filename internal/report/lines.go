package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"stackshot/internal/show"
)

// lines writes a report line by line, keeps it within the terminal and counts
// what a limited first screen leaves out.
type lines struct {
	w     *bufio.Writer // keeps the first error
	o     Options
	n     int      // lines so far
	rest  string   // the command that shows the rest
	apart bool     // it has lines of its own
	held  []string // the lines of the first screen that the tail takes the place of
	color string   // of the lines that follow; "" for none
	room  room
}

// ANSI colours.
const (
	red   = "\x1b[1;31m"
	bold  = "\x1b[1m"
	plain = "\x1b[0m"
)

func newLines(w io.Writer, o Options) *lines {
	l := &lines{w: bufio.NewWriter(w), o: o, room: room{most: o.MaxBytes}, rest: Clean(cmp.Or(o.RestCommand, "stackshot report FILE"))}
	l.apart = o.Width > 0 && show.Cells(more(maxLines)+" "+l.rest) > o.Width
	return l
}

// maxLines are more than a report has.
const maxLines = 9_999_999

func more(n int) string { return fmt.Sprintf("... %d more lines:", n) }

// tail ends a first screen of a report that has n lines more. A command is there to
// be copied, so it is never cut: where it does not fit beside the words it has
// lines of its own.
func (l *lines) tail(n int) []string {
	if l.apart {
		return []string{fit(more(n), l.o.Width), l.rest}
	}
	return []string{more(n) + " " + l.rest}
}

// tailRows is how many rows of the terminal the tail takes.
func (l *lines) tailRows() int {
	if !l.apart {
		return 1
	}
	return 2 + max(show.Cells(l.rest)-1, 0)/l.o.Width
}

// line writes one line, cut to the width.
func (l *lines) line(format string, args ...any) {
	l.put(fit(strings.TrimRight(fmt.Sprintf(format, args...), " "), l.o.Width))
}

// words writes text of which no word may be lost: wrapped, with first before
// the first line and as many spaces before the others.
func (l *lines) words(first, format string, args ...any) {
	width := l.o.Width
	if width > 0 {
		width = max(width-len(first), 20)
	}
	for _, s := range wrap(fmt.Sprintf(format, args...), width) {
		l.put(strings.TrimRight(first+s, " "))
		first = strings.Repeat(" ", len(first))
	}
}

// colored makes the lines that f writes stand out.
func (l *lines) colored(color string, f func()) {
	if l.o.Color {
		l.color = color
	}
	f()
	l.color = ""
}

func (l *lines) put(s string) {
	l.n++
	if l.color != "" && s != "" {
		s = l.color + s + plain
	}
	switch limit := l.o.FirstScreen; {
	case limit <= 0 || l.n <= limit-l.tailRows():
		l.write(s)
	case l.n <= limit:
		l.held = append(l.held, s)
	}
}

func (l *lines) write(s string) {
	l.room.used += int64(len(s)) + 1
	l.w.WriteString(s)
	l.w.WriteByte('\n')
}

// close ends the report: the held lines where none followed, else what says how
// many are missing. Its error is the writer's first.
func (l *lines) close() error {
	if limit := l.o.FirstScreen; limit > 0 && l.n > limit {
		l.held = l.tail(l.n - max(limit-l.tailRows(), 0))
	}
	for _, s := range l.held {
		l.write(s)
	}
	return l.w.Flush()
}
