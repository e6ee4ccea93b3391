package show

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes a name from the machine fit to be shown: every byte of a
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
