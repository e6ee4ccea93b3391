package report

import (
	"strings"
	"unicode/utf8"
)

// maxArguments is how many characters are shown of one list of type arguments. A
// Go shape or a C++ template spells out its whole structure there.
const maxArguments = 60

// dots stand for what is cut. They are ASCII: not every terminal shows more.
const dots = "..."

// shorten cuts each longer list of type arguments in a function's name to its beginning,
// with dots before the closing bracket: "f[go.shape...]", "f<std::map<...>". Names
// that differ only in what is cut look alike; the other formats have the whole names.
func shorten(name string) string {
	if utf8.RuneCountInString(name) <= maxArguments {
		return name
	}
	var out strings.Builder
	for i := 0; i < len(name); {
		n := max(operatorAt(name[i:]), 1)
		if list := argumentsAt(name[i:]); list > 0 {
			n = list
			out.WriteString(name[i:i+1] + beginning(name[i+1:i+n-1]) + name[i+n-1:i+n])
		} else {
			out.WriteString(name[i : i+n])
		}
		i += n
	}
	return out.String()
}

// beginning is a list of arguments, cut to maxArguments.
func beginning(list string) string {
	runes := 0
	for i := range list {
		if runes++; runes == maxArguments-len(dots)+1 && utf8.RuneCountInString(list[i:]) > len(dots) {
			return list[:i] + dots
		}
	}
	return list
}

// operatorAt returns the length of the C++ operator name that s begins with, if the
// operator has brackets, which open no list; else 0.
func operatorAt(s string) int {
	const word = "operator"
	if !strings.HasPrefix(s, word) {
		return 0
	}
	for _, op := range []string{"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">", "[]"} {
		if strings.HasPrefix(s[len(word):], op) {
			return len(word) + len(op)
		}
	}
	return 0
}

// argumentsAt returns the length of the bracketed list that s begins with; 0 for none and
// for a list without an end.
func argumentsAt(s string) int {
	if s[0] != '[' && s[0] != '<' {
		return 0
	}
	begin, end := s[0], byte(']')
	if begin == '<' {
		end = '>'
	}
	depth := 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == begin:
			depth++
		case s[i] == end && !(end == '>' && s[i-1] == '-'): // an arrow
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}
