package screen

import (
	"fmt"
	"strings"

	"stackshot/internal/show"
)

// Bounds of what is written.
const (
	maxRows    = 2  // of one entry, alarm or count, where the height is limited
	roomyRows  = 4  // of one entry, if all have room so
	maxEntries = 50 // of one section, where it is not
)

// line is one line of the screen.
type line struct{ text, color string }

// page lays a screen out. The header comes first, then the footer takes what it needs, and the body
// gets the rest.
type page struct {
	width   int
	rows    int  // that are left
	limited bool // rows counts
	top     []line
	middle  []line
	bottom  []line
}

func (p *page) lines() []line { return append(append(p.top, p.middle...), p.bottom...) }

// has reports whether there is room for n more rows.
func (p *page) has(n int) bool { return !p.limited || n <= p.rows }

// wrapped is how many rows one text may have.
func (p *page) wrapped() int {
	return p.atMost(maxRows)
}

// atMost is most rows, if they are limited.
func (p *page) atMost(most int) int {
	if p.limited {
		return most
	}
	return 1 << 10
}

// header has one line of the machine, then the alarms: at most a third of the screen.
func (p *page) header(machine string, alarms []string) {
	if !p.has(1) {
		return
	}
	p.top = append(p.top, line{cut(machine, p.width), show.Bold})
	p.rows--
	room := max(1, (p.rows-2)/3)
	for i, a := range alarms {
		rows := wrap("!! "+a, p.width, 3, p.wrapped())
		left := len(alarms) - i
		switch {
		case !p.limited:
		case !p.has(1):
			return
		case left > 1 && room == 1:
			what := fmt.Sprintf("!! and %d more, which the report has: %s", left, a)
			if i == 0 {
				what = fmt.Sprintf("!! 1 of %d: %s", left, a)
			}
			p.alarm([]string{cut(what, p.width)})
			return
		case len(rows) > room || left > 1 && len(rows) >= room:
			rows = []string{cut("!! "+a, p.width)}
		}
		p.alarm(rows)
		room -= len(rows)
	}
}

func (p *page) alarm(rows []string) {
	for _, s := range rows {
		p.top = append(p.top, line{s, show.Red})
	}
	p.rows -= len(rows)
}

// footer has who is in line ("": nobody), the counts, the picture and the next commands: of those that have no room together
// the first of the commands stays longest.
func (p *page) footer(inLine, rest, picture string, commands []next) {
	room := max(0, (p.rows-2)/2)
	take := func(n int) bool {
		if p.limited && n > room {
			return false
		}
		room -= n
		p.rows -= n
		return true
	}
	shown := 0
	if len(commands) > 0 && take(commands[0].rows(p.width)) {
		shown = 1
	}
	hasPicture := take(1)
	hasRest := take(1)
	hasLine := inLine != "" && take(1)
	for shown > 0 && shown < len(commands) && take(commands[shown].rows(p.width)) {
		shown++
	}
	for _, x := range []struct {
		has  bool
		text string
	}{{hasLine, inLine}, {hasRest, rest}, {hasPicture, picture}} {
		if !x.has {
			continue
		}
		rows := wrap(x.text, p.width, 9, p.wrapped())
		if n := len(rows) - 1; n > 0 && !take(n) {
			rows = []string{cut(x.text, p.width)}
		}
		p.plain(&p.bottom, rows)
	}
	for _, c := range commands[:shown] {
		p.bottom = append(p.bottom, line{text: c.text(p.width)})
	}
}

func (p *page) plain(to *[]line, rows []string) {
	for _, s := range rows {
		*to = append(*to, line{text: s})
	}
}

// wrap breaks s at spaces into at most most lines of at most width cells; all but the first begin
// with so many spaces. What is too long for that is cut. Width 0: one line.
func wrap(s string, width, indent, most int) (out []string) {
	if width <= 0 {
		return []string{s}
	}
	if width < 4*indent {
		indent = 0
	}
	for show.Cells(s) > width && len(out) < most-1 {
		at := breakAt(s, width, indent)
		out = append(out, strings.TrimRight(s[:at], " "))
		s = strings.Repeat(" ", indent) + strings.TrimLeft(s[at:], " ")
	}
	return append(out, cut(s, width))
}

// cut cuts s to width, but no number: a part of one is another one.
func cut(s string, width int) string {
	const dots = "..."
	out := show.Fit(s, width)
	kept, isCut := strings.CutSuffix(out, dots)
	if !isCut || out == s || !strings.HasPrefix(s, kept) || kept == "" {
		return out
	}
	if next := s[len(kept):]; next != "" && next[0] >= '0' && next[0] <= '9' {
		kept = strings.TrimRight(kept, "0123456789")
	}
	return kept + dots
}

// breakAt is where s, which is longer than width, is broken: at its last space that fits and
// does not stand in the indent, or behind the last character that fits.
func breakAt(s string, width, indent int) (at int) {
	space := 0
	for i, r := range s {
		if i > 0 && show.Cells(s[:i]) > width {
			break
		}
		if at = i; r == ' ' && strings.Trim(s[:i], " ") != "" && i > indent {
			space = i
		}
	}
	if space > 0 {
		return space
	}
	if at == 0 {
		return len(s)
	}
	return at
}
