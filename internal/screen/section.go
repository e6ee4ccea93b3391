package screen

import (
	"fmt"
	"strings"
)

// section is one heading of the screen. A section without entries is not written.
type section struct {
	title   string  // "STUCK"
	entries []entry // what matters most first
}

// entry is one thing that a section says.
type entry struct {
	// line is the whole entry in one line, what matters most first: a terminal that has no room
	// to wrap it cuts its end.
	line string
	// more are further lines, which are written if there is room for them. Each can be missed.
	more []string
	// threads is how many threads the entry is about: those of entries without room are counted.
	threads int
	// minor entries are the first to go where there is little room, and do not make a machine
	// one on which something is wrong.
	minor bool
	// pid is the task to look at next; 0: none.
	pid uint64
}

// minorLast compares entries for sorting.
func minorLast(a, b entry) int {
	switch {
	case a.minor == b.minor:
		return 0
	case a.minor:
		return 1
	}
	return -1
}

// brief is e in one line, with the word of its section.
func (s *section) brief(e *entry) string {
	return strings.Join(strings.Fields(s.word()+": "+e.line), " ")
}

// word is the first word of the heading: "STOPPED".
func (s *section) word() string {
	word, _, _ := strings.Cut(s.title, ",")
	return word
}

// entryIndent is where the words of an entry stand, behind its measure.
const entryIndent = 9

// row is the line of an entry: what is measured (mostly an age), then the words.
func row(measure, words string) string {
	return fmt.Sprintf("%*s  %s", entryIndent-2, measure, words)
}

// details are further lines of an entry, under its words.
func details(lines ...string) []string {
	for i, s := range lines {
		lines[i] = strings.Repeat(" ", entryIndent) + s
	}
	return lines
}

// andMore ends a list of which n were left out; "" if none were.
func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}
