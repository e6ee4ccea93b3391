package filter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a text: its bytes, and how deep parentheses and "not" may be nested.
const (
	maxText  = 64 << 10
	maxDepth = 100
)

// Error says what is wrong with the text of an expression, and where.
type Error struct {
	Column int // of the character, from 1; one more than there are: at the end
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Reason) }

// parser reads an expression from left to right:
//
//	or         = and { "or" and }
//	and        = unary { "and" unary }
//	unary      = "not" unary | "(" or ")" | comparison
//	comparison = field operator value
type parser struct {
	text  string
	at    int // byte of text that is next
	depth int
}

// Parse reads an expression. Errors: *Error.
func Parse(text string) (*Expr, error) {
	p := &parser{text: text}
	if len(text) > maxText {
		return nil, p.fail(0, "the expression is longer than %d bytes", maxText)
	}
	e, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(text) {
		at := p.at
		return nil, p.fail(at, `%swant "and", "or" or the end`, p.instead(at))
	}
	return e, nil
}

func (p *parser) fail(at int, format string, args ...any) error {
	return &Error{Column: utf8.RuneCountInString(p.text[:at]) + 1, Reason: fmt.Sprintf(format, args...)}
}

func (p *parser) or() (*Expr, error)  { return p.list(Or, p.and) }
func (p *parser) and() (*Expr, error) { return p.list(And, p.unary) }

// list reads what an operator joins.
func (p *parser) list(op Op, next func() (*Expr, error)) (*Expr, error) {
	var args []*Expr
	for len(args) == 0 || p.keyword(op) {
		e, err := next()
		if err != nil {
			return nil, err
		}
		args = append(args, e)
	}
	return join(op, args), nil
}

func (p *parser) unary() (*Expr, error) {
	p.space()
	at := p.at
	switch {
	case p.keyword(Not):
		return p.nested(at, func() (*Expr, error) {
			e, err := p.unary()
			return &Expr{Op: Not, Args: []*Expr{e}}, err
		})
	case p.char('('):
		return p.nested(at, func() (*Expr, error) {
			e, err := p.or()
			if p.space(); err == nil && !p.char(')') {
				err = p.fail(p.at, `want "and", "or", or the ")" of the "(" in column %d`, utf8.RuneCountInString(p.text[:at])+1)
			}
			return e, err
		})
	}
	return p.comparison()
}

// nested reads what begins at a byte, one level deeper.
func (p *parser) nested(at int, read func() (*Expr, error)) (*Expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail(at, "more than %d levels of parentheses and not", maxDepth)
	}
	e, err := read()
	p.depth--
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (p *parser) comparison() (*Expr, error) {
	begin := p.at
	field := p.word()
	if field == "" {
		return nil, p.fail(begin, `%swant a field, "not" or "("; fields are %s`, p.instead(begin), strings.Join(Fields(), ", "))
	}
	if kindOf(field) == nil {
		return nil, p.fail(begin, "%v", unknownField(field))
	}
	p.space()
	at := p.at
	op := p.operator()
	if !slices.Contains(comparisons, op) {
		return nil, p.fail(at, "%swant %s after %s", p.instead(at), oneOf(kindOf(field).ops), field)
	}
	if err := checkOp(field, op); err != nil {
		return nil, p.fail(at, "%v", err)
	}
	p.space()
	at = p.at
	value, err := p.value()
	if err == nil {
		err = check(field, op, value)
	}
	if err != nil {
		return nil, p.fail(at, "%v", err)
	}
	return &Expr{Op: op, Field: field, Value: value}, nil
}

// instead is what stands at a byte, for a message: nothing at the end.
func (p *parser) instead(at int) string {
	p.at = at
	if t := p.token(); t != "" {
		return quote(t) + ": "
	}
	return ""
}

// value reads a value, with or without quotes. Its errors have no column.
func (p *parser) value() (Value, error) {
	if p.at < len(p.text) && (p.text[p.at] == '\'' || p.text[p.at] == '"') {
		return p.quoted(p.text[p.at])
	}
	s := p.run(spaces + `()'"`)
	for strings.HasSuffix(s, `\`) && p.at < len(p.text) && strings.IndexByte(`'"`, p.text[p.at]) >= 0 {
		p.at++ // an escaped quote ends no value
		s += p.text[p.at-1:p.at] + p.run(spaces+`()'"`)
	}
	switch {
	case s == "":
		return nil, errors.New("want a value")
	case p.at < len(p.text) && strings.IndexByte(`'"(`, p.text[p.at]) >= 0:
		return nil, fmt.Errorf("%c within a value: put quotes around all of it", p.text[p.at])
	}
	return ParseValue(s), nil
}

func (p *parser) quoted(mark byte) (Value, error) {
	for i := p.at + 1; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case mark:
			s := p.text[p.at+1 : i]
			p.at = i + 1
			switch {
			case s == "":
				return nil, errors.New("an empty value")
			case p.at < len(p.text) && strings.IndexByte(spaces+"()", p.text[p.at]) < 0:
				return nil, errors.New("a value that goes on after its quotes")
			}
			return ParseValue(s), nil
		}
	}
	return nil, errors.New("a quote that is not closed")
}
