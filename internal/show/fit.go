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

// Wrap breaks s at spaces into lines of at most width cells, and a word that is
// longer where the line ends. A command between backquotes is one word, and is not
// broken: it is there to be copied. Width 0: one line.
func Wrap(s string, width int) []string {
	if width <= 0 {
		return []string{s}
	}
	var lines []string
	line, cells := "", 0
	for word := range words(s) {
		n := Cells(word)
		if n > width && !strings.HasPrefix(word, "`") {
			if line != "" {
				lines = append(lines, line)
			}
			for n > width {
				var piece string
				piece, word = split(word, width)
				lines = append(lines, piece)
				n = Cells(word)
			}
			line, cells = word, n
			continue
		}
		if line != "" && cells+1+n > width {
			lines = append(lines, line)
			line, cells = "", 0
		}
		if line != "" {
			line += " "
			cells++
		}
		line += word
		cells += n
	}
	return append(lines, line)
}

// split takes as much of s as goes into width cells, and at least one character.
func split(s string, width int) (head, rest string) {
	cells := 0
	for i, r := range s {
		if cells += columns(r); cells > width && i > 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// words yields what stands between the spaces of s, and what stands between
// backquotes whole.
func words(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for more := true; more; {
			end := 0
			if strings.HasPrefix(s, "`") {
				end = 1 + max(strings.IndexByte(s[1:], '`'), 0)
			}
			var word string
			n := strings.IndexByte(s[end:], ' ')
			if more = n >= 0; more {
				word, s = s[:end+n], s[end+n+1:]
			} else {
				word = s
			}
			if !yield(word) {
				return
			}
		}
	}
}
