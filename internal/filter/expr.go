package filter

import (
	"slices"
	"strings"
)

// Op is an operator, as the language writes it.
type Op string

const (
	And Op = "and"
	Or  Op = "or"
	Not Op = "not"

	Is      Op = "="
	IsNot   Op = "!=" // not =
	Part    Op = "~"
	Prefix  Op = "^"
	Less    Op = "<"
	AtMost  Op = "<="
	More    Op = ">"
	AtLeast Op = ">="
)

// comparisons are the operators between a field and a value.
var comparisons = []Op{Is, IsNot, Part, Prefix, Less, AtMost, More, AtLeast}

// Expr is an expression: Args joined by And or Or, not an argument, or a comparison.
type Expr struct {
	Op    Op
	Args  []*Expr // of And and Or at least two, of Not one, of a comparison none
	Field string  // of a comparison
	Value Value   // of a comparison
}

// Compare makes a comparison. The error says why the field cannot be compared so.
func Compare(field string, op Op, value Value) (*Expr, error) {
	if err := check(field, op, value); err != nil {
		return nil, err
	}
	return &Expr{Op: op, Field: field, Value: value}, nil
}

// All is true where all of list are: nil, which is true everywhere, for none. Nil entries do
// not count.
func All(list ...*Expr) *Expr { return join(And, list) }

// Any is true where one of list is; nil for none.
func Any(list ...*Expr) *Expr { return join(Or, list) }

func join(op Op, list []*Expr) *Expr {
	list = slices.DeleteFunc(slices.Clone(list), func(e *Expr) bool { return e == nil })
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return &Expr{Op: op, Args: list}
}

// Uses reports whether e compares one of the fields.
func (e *Expr) Uses(fields ...string) bool {
	return e != nil && (slices.Contains(fields, e.Field) || slices.ContainsFunc(e.Args, func(a *Expr) bool { return a.Uses(fields...) }))
}

// String is e in the language.
func (e *Expr) String() string {
	switch e.Op {
	case Not:
		return "not " + e.Args[0].within(Not)
	case And, Or:
		parts := make([]string, len(e.Args))
		for i, a := range e.Args {
			parts[i] = a.within(e.Op)
		}
		return strings.Join(parts, " "+string(e.Op)+" ")
	}
	return e.Field + string(e.Op) + e.Value.String()
}

// within is e as an argument, in parentheses where it needs them.
func (e *Expr) within(op Op) string {
	if e.Op == Or || e.Op == And && op != Or {
		return "(" + e.String() + ")"
	}
	return e.String()
}
