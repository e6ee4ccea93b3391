package screen

import (
	"fmt"

	"stackshot/internal/show"
)

// share is how much of a section is shown: of its first entries so many rows each.
type share struct {
	*section
	rows []int
	bare bool // there is no room for the heading
}

// body has the sections. Each entry gets a row while there is room, then those that are longer get
// further rows, the first ones first.
func (p *page) body(nothing string, sections []section) {
	if nothing != "" && p.has(1) {
		p.middle = append(p.middle, line{text: cut(nothing, p.width)})
		p.rows--
	}
	shares := make([]share, len(sections))
	for i := range sections {
		shares[i].section = &sections[i]
	}
	room := p.rows
	if !p.fill(shares, &room) { // one row for the count of what has no room
		for i := range shares {
			shares[i].rows, shares[i].bare = nil, false
		}
		room = max(p.rows-1, min(p.rows, 1))
		p.fill(shares, &room)
	}
	for _, most := range []int{maxRows, roomyRows} {
		p.grow(shares, &room, most)
	}
	p.spend(shares)
}

// fill gives each section a heading and as many entries of one row as there is room for: each the
// first one, then the first section two more for each one of the others; minor ones have what is left. It reports whether that is all.
func (p *page) fill(shares []share, room *int) bool {
	for _, minor := range []bool{false, true} {
		for again := true; again; {
			again = false
			for i := range shares {
				n := 1
				if i == 0 && len(shares[i].rows) > 0 {
					n = 2
				}
				for ; n > 0 && shares[i].next(p, room, minor); n-- {
					again = true
				}
			}
		}
	}
	for i := range shares {
		if len(shares[i].rows) < len(shares[i].entries) {
			return false
		}
	}
	return true
}

// next takes room for one entry more. A heading without an entry says nothing, an entry without its
// heading does.
func (s *share) next(p *page, room *int, minor bool) bool {
	k := len(s.rows)
	if k == len(s.entries) || s.entries[k].minor && !minor || !p.limited && k == maxEntries || p.limited && *room < 1 {
		return false
	}
	need := 1
	if k == 0 {
		need = 2
		s.bare = p.limited && *room < need
	}
	*room -= min(need, *room)
	s.rows = append(s.rows, 1)
	return true
}

// grow gives entries that do not fit into their rows further ones, at most most.
func (p *page) grow(shares []share, room *int, most int) {
	for k, again := 0, true; again; k++ {
		again = false
		for i := range shares {
			s := &shares[i]
			if k >= len(s.rows) {
				continue
			}
			again = true
			more := len(wrap(s.entries[k].line, p.width, entryIndent, p.atMost(most))) - s.rows[k]
			if p.limited {
				more = min(more, *room)
			}
			s.rows[k] += max(more, 0)
			*room -= max(more, 0)
		}
	}
}

// spend writes what has room; what is then left goes to further lines, and to blank ones.
func (p *page) spend(shares []share) {
	left, hidden := p.rows, show.Parts{}
	total := 0
	for i := range shares {
		s := &shares[i]
		for _, rows := range s.rows {
			left -= rows
		}
		if len(s.rows) > 0 && !s.bare {
			left--
		}
		if n := len(s.entries) - len(s.rows); n > 0 {
			total += n
			hidden.Add("%s %d%s", s.word(), n, s.threads(len(s.rows)))
		}
	}
	if total > 0 {
		left--
	}
	blanks := left >= len(shares)+1 || !p.limited
	if blanks {
		left -= len(shares) + 1 // no further line takes their room
	}
	for i := range shares {
		left = p.write(&shares[i], left, blanks)
	}
	if total > 0 && (left >= 0 || !p.limited) {
		p.middle = append(p.middle, line{text: cut(fmt.Sprintf("and %d more: %s", total, hidden.Join(", ")), p.width)})
	}
	if blanks {
		p.middle = append(p.middle, line{})
	}
}

// threads says how many threads the entries from the n-th on are about.
func (s *section) threads(n int) string {
	sum := 0
	for _, e := range s.entries[n:] {
		sum += e.threads
	}
	if sum == 0 {
		return ""
	}
	return " (" + count(sum, "thread", "threads") + ")"
}

// write writes a section. left are rows that nobody needs; it returns what is left of them.
func (p *page) write(s *share, left int, blank bool) int {
	if len(s.rows) == 0 {
		return left
	}
	if blank {
		p.middle = append(p.middle, line{})
	}
	if !s.bare {
		p.middle = append(p.middle, line{show.Fit(s.title, p.width), show.Bold})
	}
	for k, rows := range s.rows {
		e := &s.entries[k]
		p.plain(&p.middle, wrap(e.line, p.width, entryIndent, rows))
		for _, m := range e.more {
			if p.limited && left <= len(s.rows) { // those of the entries that follow come first
				break
			}
			p.middle = append(p.middle, line{text: cut(m, p.width)})
			left--
		}
	}
	return left
}
