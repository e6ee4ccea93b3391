package show

import (
	"errors"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes a name from the machine fit to be shown: every byte of a
// character that is not printable becomes \xNN. Printable is what package unicode
// says, with the ASCII space as the only space. Format characters (bidirectional
// controls, zero-width ones), line separators and private use are not printable. A
// backslash stays itself, so a name can imitate an escape but not be one.
func Clean(s string) string {
	const hex = "0123456789abcdef"
	var out strings.Builder // empty until the first character that is replaced
	kept := 0               // s[:kept] is in out
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !printable(r, n) {
			out.WriteString(s[kept:i])
			for _, c := range []byte(s[i : i+n]) {
				out.Write([]byte{'\\', 'x', hex[c>>4], hex[c&15]})
			}
			kept = i + n
		}
		i += n
	}
	if kept == 0 {
		return s // most names: nothing is copied
	}
	return out.String() + s[kept:]
}

// printable is asked about a character and the number of its bytes in the name. A byte
// that is not UTF-8 decodes to RuneError and is one byte long; a U+FFFD that the name
// really has is three.
func printable(r rune, size int) bool {
	return !(r == utf8.RuneError && size <= 1) && unicode.IsPrint(r)
}

// WithoutPath returns an error of a file without its operation and path, for a line that
// names the file in its own way.
func WithoutPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
