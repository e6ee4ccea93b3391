package filter

import (
	"strings"

	"stackshot/internal/show"
)

// Value is what a field is compared with: literal pieces with a wildcard between each two.
// One piece is a text without a wildcard. No piece but the first and the last is empty.
type Value []string

// Literal is the value that is just this text.
func Literal(s string) Value { return Value{s} }

// ParseValue reads a value as the language has it within quotes: * is a wildcard, and a
// backslash takes the meaning of the next *, quote or backslash.
func ParseValue(s string) Value {
	v := Value{}
	var piece strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '*':
			v = v.star(piece.String())
			piece.Reset()
		case c == '\\' && i+1 < len(s) && strings.IndexByte(escaped, s[i+1]) >= 0:
			i++
			piece.WriteByte(s[i])
		default:
			piece.WriteByte(c)
		}
	}
	return append(v, piece.String())
}

// escaped are the characters before which a backslash is no character of its own.
const escaped = `*'"\`

// star ends a piece at a wildcard. Two wildcards side by side are one.
func (v Value) star(piece string) Value {
	if len(v) > 0 && piece == "" {
		return v
	}
	return append(v, piece)
}

// literal is the text of a value without a wildcard.
func (v Value) literal() (text string, ok bool) {
	if len(v) != 1 {
		return "", false
	}
	return v[0], true
}

// text is the value as ParseValue reads it.
func (v Value) text() string {
	escape := strings.NewReplacer(`*`, `\*`, `'`, `\'`, `"`, `\"`, `\`, `\\`)
	pieces := make([]string, len(v))
	for i, s := range v {
		pieces[i] = escape.Replace(s)
	}
	return strings.Join(pieces, "*")
}

// maxQuoted bounds a value in a message, in cells.
const maxQuoted = 40

// quoted is the value in a message.
func (v Value) quoted() string { return quote(v.text()) }

func quote(s string) string { return `"` + show.Fit(show.Clean(s), maxQuoted) + `"` }

// bare are the characters of values that need no quotes, beside letters and digits.
const bare = `_./:@%+,-*[]#$`

// String is the value in the language, within quotes where it needs them.
func (v Value) String() string {
	s := v.text()
	for _, r := range s {
		if !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune(bare, r)) {
			return `"` + s + `"`
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

// matches reports whether a text is, begins with or contains the value.
func (v Value) matches(op Op, s string) bool {
	switch op {
	case Part:
		return v.find(s)
	case Prefix:
		rest, ok := strings.CutPrefix(s, v[0])
		return ok && v[1:].find(rest)
	}
	last := v[len(v)-1]
	if len(v) == 1 {
		return s == last
	}
	rest, ok := strings.CutPrefix(s, v[0])
	if ok {
		rest, ok = strings.CutSuffix(rest, last)
	}
	return ok && v[1:len(v)-1].find(rest)
}

// find reports whether the pieces stand in a text in their order. The first place for each
// leaves most room for the others, so none needs to be tried twice.
func (v Value) find(s string) bool {
	for _, piece := range v {
		i := strings.Index(s, piece)
		if i < 0 {
			return false
		}
		s = s[i+len(piece):]
	}
	return true
}
