package show

import (
	"fmt"
	"strings"
)

// Page keeps the lines of a text report within a terminal.
type Page struct {
	Width int               // of the terminal, in cells; 0: no limit
	Wrap  bool              // Line wraps: its end matters as much as its begin. Else it is cut, as rows of a table are
	Put   func(line string) // writes a line, which has no newline
}

// ANSI colours.
const (
	Red   = "\x1b[1;31m"
	Bold  = "\x1b[1m"
	Plain = "\x1b[0m"
)

// Paint gives a line in a colour; "" leaves it as it is.
func Paint(color, line string) string {
	if color == "" || line == "" {
		return line
	}
	return color + line + Plain
}

// minWords is the least width, in cells, to which Words wraps: nobody reads a sentence in
// narrower lines.
const minWords = 20

// hanging is how far the further lines of a line that is wrapped stand in, in cells: below it other lines follow.
const hanging = 4

// Line writes one line, cut to the width, or wrapped.
func (p *Page) Line(format string, args ...any) {
	s := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	if !p.Wrap || p.Width <= 0 || Cells(s) <= p.Width {
		p.Put(Fit(s, p.Width))
		return
	}
	text := strings.TrimLeft(s, " ")
	indent := s[:len(s)-len(text)]
	rest := indent + strings.Repeat(" ", hanging)
	lines := Wrap(text, max(p.Width-len(rest), minWords))
	p.Put(indent + lines[0])
	for _, s := range lines[1:] {
		p.Put(strings.TrimRight(rest+s, " "))
	}
}

// Words writes a text of which no word may be lost. It wraps the text and puts first before
// the first line, and as many spaces before the other lines.
func (p *Page) Words(first, format string, args ...any) {
	width := p.Width
	if width > 0 {
		width = max(width-len(first), minWords)
	}
	for _, s := range Wrap(fmt.Sprintf(format, args...), width) {
		p.Put(strings.TrimRight(first+s, " "))
		first = strings.Repeat(" ", len(first))
	}
}

// Parts are the parts of a line or a sentence, in order. The zero value has none.
type Parts []string

// Add appends a part, unless it is empty.
func (p *Parts) Add(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); s != "" {
		*p = append(*p, s)
	}
}

// If appends a part if known is true.
func (p *Parts) If(known bool, format string, args ...any) {
	if known {
		p.Add(format, args...)
	}
}

// Join returns the parts with a separator between them; "" without parts.
func (p Parts) Join(separator string) string { return strings.Join(p, separator) }

// AtMost returns the first n entries of a list. If there are more, one further entry, made
// by more, says how many.
func AtMost(n int, list []string, more func(n int) string) []string {
	if rest := len(list) - n; rest > 0 {
		return append(list[:n:n], more(rest))
	}
	return list
}
