package filter

import "strings"

// What ends a word.
const (
	spaces    = " \t\r\n"
	operators = "=!<>~^"
	ends      = spaces + operators + `()'"`
)

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(spaces, p.text[p.at]) >= 0 {
		p.at++
	}
}

// run takes what is before the next of some characters.
func (p *parser) run(until string) string {
	rest := p.text[p.at:]
	if i := strings.IndexAny(rest, until); i >= 0 {
		rest = rest[:i]
	}
	p.at += len(rest)
	return rest
}

func (p *parser) word() string { return p.run(ends) }

// char takes one character, if it is next.
func (p *parser) char(c byte) bool {
	if p.at == len(p.text) || p.text[p.at] != c {
		return false
	}
	p.at++
	return true
}

// keyword takes and, or or not, in small or capital letters, if it is next.
func (p *parser) keyword(op Op) bool {
	p.space()
	at := p.at
	if strings.EqualFold(p.word(), string(op)) {
		return true
	}
	p.at = at
	return false
}

// operator takes the characters of an operator; == is =.
func (p *parser) operator() Op {
	begin := p.at
	for p.at < len(p.text) && strings.IndexByte(operators, p.text[p.at]) >= 0 {
		p.at++
	}
	if op := Op(p.text[begin:p.at]); op != "==" {
		return op
	}
	return Is
}

// token takes what is next, for a message.
func (p *parser) token() string {
	if s := p.word(); s != "" {
		return s
	}
	if s := p.operator(); s != "" {
		return string(s)
	}
	return p.text[p.at:min(p.at+1, len(p.text))]
}
