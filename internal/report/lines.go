package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// lines writes a report line by line, keeps it within the terminal and counts
// what a limited first screen leaves out. Errors stick: the first one is what
// close returns.
type lines struct {
	w     *bufio.Writer
	o     Options
	n     int    // lines so far
	held  string // the last line of the first screen, in case nothing follows
	color string // of the lines that follow; "" for none
	err   error
	room  room
}

// ANSI colours.
const (
	red   = "\x1b[1;31m"
	bold  = "\x1b[1m"
	plain = "\x1b[0m"
)

func newLines(w io.Writer, o Options) *lines {
	return &lines{w: bufio.NewWriter(w), o: o, room: room{most: o.MaxBytes}}
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
		l.line("%s%s", first, s)
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
	case limit <= 0 || l.n < limit:
		l.write(s)
	case l.n == limit:
		l.held = s
	}
}

func (l *lines) write(s string) {
	if l.err != nil {
		return
	}
	l.room.used += int64(len(s)) + 1
	if _, err := l.w.WriteString(s); err != nil {
		l.err = err
		return
	}
	l.err = l.w.WriteByte('\n')
}

// close ends the report: the held line where it was the last one, else the
// line that says how many are missing.
func (l *lines) close() error {
	if limit := l.o.FirstScreen; limit > 0 && l.n >= limit {
		if l.n > limit {
			rest := l.o.RestCommand
			if rest == "" {
				rest = "stackshot report FILE"
			}
			l.held = fit(fmt.Sprintf("... %d more lines: %s", l.n-limit+1, Clean(rest)), l.o.Width)
		}
		l.write(l.held)
	}
	if l.err == nil {
		l.err = l.w.Flush()
	}
	return l.err
}
