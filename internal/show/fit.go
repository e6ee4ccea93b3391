package show

import (
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

// Wrap breaks s at spaces into lines of at most width cells; a word that is
// longer stands alone. Width 0: one line.
func Wrap(s string, width int) []string {
	if width <= 0 {
		return []string{s}
	}
	var lines []string
	line, cells := "", 0
	for word := range strings.SplitSeq(s, " ") {
		n := Cells(word)
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
