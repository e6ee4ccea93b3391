package kcdata

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// traceConstants reads the Trace* constants out of linux.go.
func traceConstants(t *testing.T) map[string]uint32 {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "linux.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]uint32{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(v.Names[0].Name, "Trace") || len(v.Values) != 1 {
			return true
		}
		lit, ok := v.Values[0].(*ast.BasicLit)
		if !ok {
			t.Errorf("%s is not a plain number", v.Names[0].Name)
			return true
		}
		n64, err := strconv.ParseUint(lit.Value, 0, 32)
		if err != nil {
			t.Errorf("%s: %v", v.Names[0].Name, err)
		}
		out[v.Names[0].Name] = uint32(n64)
		return true
	})
	return out
}

// TestEveryTracePlaceHasAName: each constant its own, which is the constant's
// name in words, and no name without a constant.
func TestEveryTracePlaceHasAName(t *testing.T) {
	constants := traceConstants(t)
	if len(constants) < 13 {
		t.Fatalf("only %d Trace* constants found in %s", len(constants), "linux.go")
	}
	named := map[uint32]bool{}
	for name, place := range constants {
		p, ok := TracePlaceOf(place)
		if got := "Trace" + strings.ReplaceAll(p.Name, " ", ""); !ok || !strings.EqualFold(got, name) {
			t.Errorf("%s (%d) is called %q", name, place, p.Name)
		}
		if named[place] {
			t.Errorf("%s: another constant is %d too", name, place)
		}
		named[place] = true
	}
	for place := range tracePlaces {
		if _, ok := TracePlaceOf(uint32(place)); ok != named[uint32(place)] {
			t.Errorf("place %d: named %v, constant %v", place, ok, named[uint32(place)])
		}
	}
	for _, place := range []uint32{0, uint32(len(tracePlaces)), 1 << 31, 1<<32 - 1} {
		if p, ok := TracePlaceOf(place); ok || p != (TracePlace{}) {
			t.Errorf("place %d is called %q", place, p.Name)
		}
	}
}
