package filter

import "strings"

// Complete has the ways in which a text that is being written may go on, each with the text
// before it: fields, and the values of those that have few.
func Complete(text string) (out []string) {
	begin := strings.LastIndexAny(text, spaces+"(") + 1
	head, last := text[:begin], text[begin:]
	next := append(Fields(), string(Not))
	if _, err := Parse(head); err == nil {
		next = []string{string(And), string(Or)}
	}
	if i := strings.IndexAny(last, operators); i >= 0 {
		field := last[:i]
		values := strings.TrimLeft(last[i:], operators)
		head, last = text[:len(text)-len(values)], values
		next = map[string][]string{State: States(), Wait: Waits()}[field]
	}
	for _, word := range next {
		if strings.HasPrefix(word, last) {
			out = append(out, head+word)
		}
	}
	return out
}
