package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes a name from the machine fit to be shown (R2): every byte of a
// character that is not printable becomes \xNN. Printable is what unicode says,
// with the ASCII space as the only space: format characters (bidirectional
// controls, zero-width ones), line separators and private use are out. A
// backslash stays itself, so a name can imitate an escape but not be one.
func Clean(s string) string {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !printable(r, n) {
			return clean(s, i)
		}
		i += n
	}
	return s
}

func printable(r rune, size int) bool {
	return !(r == utf8.RuneError && size <= 1) && unicode.IsPrint(r)
}

// clean is Clean from the first unprintable character on.
func clean(s string, from int) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.WriteString(s[:from])
	for i := from; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if printable(r, n) {
			b.WriteString(s[i : i+n])
		} else {
			for _, c := range []byte(s[i : i+n]) {
				b.WriteString(`\x`)
				b.WriteByte(hex[c>>4])
				b.WriteByte(hex[c&15])
			}
		}
		i += n
	}
	return b.String()
}

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

// fit returns s, cut so that it takes at most width cells and then ends in
// "...". Width 0: no limit.
func fit(s string, width int) string {
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

// wrap breaks s at spaces into lines of at most width cells; a word that is
// longer stands alone. Width 0: one line.
func wrap(s string, width int) []string {
	if width <= 0 {
		return []string{s}
	}
	var lines []string
	line, cells := "", 0
	for word := range strings.SplitSeq(s, " ") {
		n := 0
		for _, r := range word {
			n += columns(r)
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
