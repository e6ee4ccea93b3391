package show

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// columns returns how many terminal cells r takes.
func columns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// Cells returns how many terminal cells s takes.
func Cells(s string) int {
	n := 0
	for _, r := range s {
		n += columns(r)
	}
	return n
}

// Fit returns s, cut so that it takes at most width cells and then ends in
// "...". Width 0: no limit.
func Fit(s string, width int) string {
	if width <= 0 || len(s) <= width {
		return s
	}
	cells, keep := 0, 0
	for i, r := range s {
		if cells+columns(r) <= width-3 {
			keep = i + utf8.RuneLen(r)
		}
		if cells += columns(r); cells > width {
			return s[:keep] + "..."[:min(3, width)]
		}
	}
	return s
}

// Wrap breaks s at spaces into lines of at most width cells. A word that is longer than
// a line is broken where the line ends. A command between backquotes is one word and is
// never broken: it is there to be copied. Width 0: one line.
func Wrap(s string, width int) []string {
	if width <= 0 {
		return []string{s}
	}
	var lines []string
	line := ""
	for word := range words(s) {
		if line != "" && Cells(line)+1+Cells(word) > width {
			lines = append(lines, line)
			line = ""
		}
		for command := strings.HasPrefix(word, "`"); !command; {
			head, rest := split(word, width)
			if rest == "" {
				break
			}
			lines = append(lines, head)
			word = rest
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// split cuts s behind as many characters as fit into width cells, and behind at least one.
func split(s string, width int) (head, rest string) {
	cells := 0
	for i, r := range s {
		if cells += columns(r); cells > width && i > 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// words yields the texts between the spaces of s. A text that begins with a backquote
// extends at least to the next backquote.
func words(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for more := true; more; {
			command := 0 // bytes up to the second backquote
			if strings.HasPrefix(s, "`") {
				command = 1 + max(strings.IndexByte(s[1:], '`'), 0)
			}
			var word, rest string
			word, rest, more = strings.Cut(s[command:], " ")
			if !yield(s[:command+len(word)]) {
				return
			}
			s = rest
		}
	}
}
