package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"stackshot/internal/testneed"
)

// The tiers of package testneed.
const (
	unit = "unit"
	live = "live"
	lab  = "lab"

	guests = "guests" // run by step vm, not by this program
)

// A test as its source has it.
type test struct {
	name        // the package is its folder, with slashes
	tier string // of its first statement
	here bool   // its file is built on this machine
}

// tests reads the tests of the module at root out of their sources, on any machine.
func tests(root string) ([]test, error) {
	var all []test
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		here, err := build.Default.MatchFile(filepath.Dir(path), d.Name())
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && isTest(f.Name.Name) {
				all = append(all, test{name{filepath.ToSlash(dir), f.Name.Name}, tierOf(f), here})
			}
		}
		return nil
	})
	return all, err
}

// isTest: the seeds of a fuzz target are tests, too.
func isTest(function string) bool {
	return function != "TestMain" && (strings.HasPrefix(function, "Test") || strings.HasPrefix(function, "Fuzz"))
}

// tierOf reads which function of testneed a test calls in its first statement.
func tierOf(f *ast.FuncDecl) string {
	if len(f.Body.List) > 0 {
		if expr, ok := f.Body.List[0].(*ast.ExprStmt); ok {
			return tierCall(expr.X)
		}
	}
	return unit
}

// tierCall is the tier that a call of testneed says; unit for anything else.
func tierCall(n ast.Node) string {
	call, _ := n.(*ast.CallExpr)
	if call == nil {
		return unit
	}
	fun, _ := call.Fun.(*ast.SelectorExpr)
	if fun == nil {
		return unit
	}
	if pkg, _ := fun.X.(*ast.Ident); pkg == nil || pkg.Name != "testneed" {
		return unit
	}
	switch fun.Sel.Name {
	case "Live", "Smoke":
		return live
	case "Lab":
		return lab
	case "Guests":
		return guests
	}
	return unit
}

// tierArgs gives what go test is asked for a tier of these tests, and with which environment. The packages with the most tests come first, since they take longest.
func tierArgs(all []test, tier string) (args, env []string, err error) {
	switch tier {
	case unit: // who begins with no tier runs always
		return []string{"./..."}, nil, nil
	case live:
		// No cached answer: the kernel and the machine are no files that go knows of.
		args, env = []string{"-count=1"}, []string{testneed.LiveVar + "=1"}
	case lab:
		args, env = []string{"-count=1", "-p=1"}, []string{testneed.LabVar + "=1"}
	default:
		return nil, nil, fmt.Errorf("no tier %q: unit, live or lab", tier)
	}
	var names []string
	count := map[string]int{}
	for _, t := range all {
		if t.tier == tier {
			names = append(names, t.test)
			count["./"+t.pkg]++
		}
	}
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("no test of tier %s", tier)
	}
	slices.Sort(names)
	args = append(args, "-run=^("+strings.Join(slices.Compact(names), "|")+")$")
	var pkgs []string
	for pkg := range count {
		pkgs = append(pkgs, pkg)
	}
	slices.SortFunc(pkgs, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	return append(args, pkgs...), env, nil
}
