package filter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

func unknownField(name string) error {
	return fmt.Errorf("unknown field %s: want %s", quote(name), strings.Join(Fields(), ", "))
}

// oneOf lists operators.
func oneOf(ops []Op) string {
	s := make([]string, len(ops))
	for i, op := range ops {
		s[i] = string(op)
	}
	return strings.Join(s[:len(s)-1], " ") + " or " + s[len(s)-1]
}

func checkOp(field string, op Op) error {
	if k := kindOf(field); !slices.Contains(k.ops, op) {
		return fmt.Errorf("%s has no %s: want %s", field, quote(string(op)), oneOf(k.ops))
	}
	return nil
}

// check says why a field cannot be compared with a value.
func check(field string, op Op, v Value) error {
	k := kindOf(field)
	if k == nil {
		return unknownField(field)
	}
	if err := checkOp(field, op); err != nil {
		return err
	}
	if s, ok := v.literal(); ok && s == "" || len(v) == 0 {
		return errors.New("an empty value")
	}
	switch {
	case k == wait:
		return checkWait(op, v)
	case k.check != nil:
		return k.check(v)
	}
	return nil
}
