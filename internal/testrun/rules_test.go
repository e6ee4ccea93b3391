package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Load must not change the outcome of a test of tier unit or live. So none compares a time that it
// measured with a bound, and none sleeps where it should wait for a condition: not the test, and no
// function of its package's tests that it calls. What else such a test must not do (hogs, storms,
// pressure) is refused where it is done: [testneed.OnlyLab].
func TestNoTimeDecides(t *testing.T) {
	packages := map[string]*functions{}
	fset := token.NewFileSet()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_bench_test.go") || strings.Contains(path, "/testdata/") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if packages[dir] == nil {
			packages[dir] = newFunctions(fset)
		}
		packages[dir].add(file)
		return nil
	})
	if err != nil || len(packages) < 40 {
		t.Fatalf("%d packages: %v", len(packages), err)
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		for _, f := range packages[dir].faults() {
			t.Error(f)
		}
	}
}

// functions are those of a package's test files, methods by their name alone.
type functions struct {
	fset  *token.FileSet
	calls map[string][]string
	wrong map[string][]string // what a function does that no test of unit or live may
	tests []string            // of tier unit and live
}

func newFunctions(fset *token.FileSet) *functions {
	return &functions{fset: fset, calls: map[string][]string{}, wrong: map[string][]string{}}
}

func (p *functions) add(file *ast.File) {
	reasons := map[int]bool{} // lines with a comment that says why
	for _, g := range file.Comments {
		for _, c := range g.List {
			if strings.HasPrefix(c.Text, reasonMark) {
				reasons[p.fset.Position(c.Pos()).Line] = true
			}
		}
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		name := f.Name.Name
		if f.Recv == nil && isTest(name) && (tierOf(f) == unit || tierOf(f) == live) {
			p.tests = append(p.tests, name)
		}
		if f.Recv != nil {
			name = "." + name
		}
		p.calls[name] = append(p.calls[name], named(f.Body)...)
		for _, at := range timed(f.Body) {
			pos := p.fset.Position(at.pos)
			if !reasons[pos.Line] {
				p.wrong[name] = append(p.wrong[name], fmt.Sprintf("%s:%d: %s", pos.Filename, pos.Line, at.what))
			}
		}
	}
}

// named are the functions and, with a dot, the methods that a function may call.
func named(body ast.Node) (all []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			all = append(append(all, "."+n.Sel.Name), named(n.X)...)
			return false
		case *ast.Ident:
			all = append(all, n.Name)
		}
		return true
	})
	return all
}

// reasonMark begins a comment on the line of what looks like a fault and is none, and says why.
const reasonMark = "// time: "

// faults are those that a test of tier unit or live does, or a function that it calls.
func (p *functions) faults() []string {
	by := map[string]string{} // function: the first test that reaches it
	for _, test := range p.tests {
		for open := []string{test}; len(open) > 0; {
			f := open[0]
			open = open[1:]
			if by[f] != "" || f != test && isTest(f) {
				continue
			}
			by[f] = test
			for _, c := range p.calls[f] {
				if _, known := p.calls[c]; known {
					open = append(open, c)
				}
			}
		}
	}
	var all []string
	for f, wrong := range p.wrong {
		for _, w := range wrong {
			if by[f] != "" {
				all = append(all, fmt.Sprintf("%s (%s, which %s reaches)", w, f, by[f]))
			}
		}
	}
	slices.Sort(all)
	return all
}

// fault is what a function does that no test of tier unit or live may do.
type fault struct {
	pos  token.Pos
	what string
}

// timed finds what lets a time decide: a measured time that is compared with a bound, but for the
// limit of a loop that began before it, and a sleep in no loop, which looks at nothing after it.
func timed(body *ast.BlockStmt) []fault {
	t := timer{began: map[string]ast.Node{}}
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		t.reads = t.reads || ok && calls(call, "time", "Now")
		return !t.reads
	})
	t.walk(body, nil)
	return t.faults
}

type timer struct {
	reads  bool                // the function reads the clock
	began  map[string]ast.Node // variables of measured times and their beginnings, each with its innermost loop
	faults []fault
}

func (t *timer) walk(n ast.Node, loop ast.Node) {
	ast.Inspect(n, func(m ast.Node) bool {
		switch m := m.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			if m != loop {
				t.walk(m, m)
				return false
			}
		case *ast.FuncLit: // when it is called nobody knows
			t.walk(m.Body, nil)
			return false
		case *ast.AssignStmt:
			for i, v := range m.Lhs {
				if i < len(m.Rhs) {
					t.assign(v, m.Rhs[i], loop)
				}
			}
		case *ast.ValueSpec:
			for i, v := range m.Names {
				if i < len(m.Values) {
					t.assign(v, m.Values[i], loop)
				}
			}
		case *ast.BinaryExpr:
			if slices.Contains([]token.Token{token.LSS, token.GTR, token.LEQ, token.GEQ}, m.Op) && (t.measures(m.X) || t.measures(m.Y)) && !t.limits(m, loop) {
				t.faults = append(t.faults, fault{m.Pos(), "compares a measured time with a bound"})
			}
		case *ast.CallExpr:
			if calls(m, "time", "Sleep") && (loop == nil || onlySleeps(loop)) {
				t.faults = append(t.faults, fault{m.Pos(), "sleeps in no loop that looks again"})
			}
		}
		return true
	})
}

// assign notes a variable, or a variable with elements, that gets a measured time, or the time of day.
func (t *timer) assign(to, value ast.Expr, loop ast.Node) {
	if element, ok := to.(*ast.IndexExpr); ok {
		to = element.X
	}
	if id, ok := to.(*ast.Ident); ok && (t.measures(value) || reads(value)) {
		t.began[id.Name] = loop
	}
}

// onlySleeps: the loop looks at nothing between two sleeps.
func onlySleeps(loop ast.Node) bool {
	var body *ast.BlockStmt
	switch l := loop.(type) {
	case *ast.ForStmt:
		asks := false
		ast.Inspect(l, func(n ast.Node) bool {
			_, call := n.(*ast.CallExpr)
			asks = asks || call && n.Pos() < l.Body.Pos()
			return !asks
		})
		if _, counts := l.Post.(*ast.IncDecStmt); !counts || asks {
			return false
		}
		body = l.Body
	case *ast.RangeStmt:
		body = l.Body
	}
	if len(body.List) != 1 {
		return false
	}
	_, sleeps := body.List[0].(*ast.ExprStmt)
	return sleeps
}

// limits: the comparison is in a loop, and what it measures began before the loop.
func (t *timer) limits(e ast.Node, loop ast.Node) bool {
	before := loop != nil
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			in, known := t.began[id.Name]
			before = before && !(known && in == loop)
		}
		return before
	})
	return before
}

// measures: the expression is a time that went by.
func (t *timer) measures(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "len" {
				return false // of whatever it is
			}
			s, ok := n.Fun.(*ast.SelectorExpr)
			found = found || calls(n, "time", "Since") || ok && t.reads && s.Sel.Name == "Sub" && len(n.Args) == 1
		case *ast.SelectorExpr: // of a run of the command, or of a capture
			found = found || n.Sel.Name == "took" || n.Sel.Name == "Stopped" || n.Sel.Name == "StoppedNs"
		case *ast.Ident:
			_, known := t.began[n.Name]
			found = found || known
		}
		return !found
	})
	return found
}

// reads: the expression is the time of day.
func reads(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && calls(call, "time", "Now")
}

func calls(call *ast.CallExpr, pkg, name string) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// What is refused of a function in a test of tier unit or live, and what is not.
func TestTimed(t *testing.T) {
	for body, want := range map[string]int{
		`if time.Since(began) > time.Second {}`:                                                             1,
		`if time.Second < time.Since(began) {}`:                                                             1,
		`took := time.Since(began); if took >= limit {}`:                                                    1,
		`took := time.Now().Sub(began); ok := took <= limit; _ = ok`:                                        1,
		`if o.took > limit {}`:                                                                              1,
		`var took = time.Since(began); if took > limit {}`:                                                  1,
		`d[0] = time.Since(began); if d[0] > limit {}`:                                                      1,
		`if res.Stopped > limit {}`:                                                                         1,
		`for range 3 { time.Sleep(1) }`:                                                                     1,
		`for i := 0; i < 3; i++ { if ok() { return }; time.Sleep(1) }`:                                      0,
		`for !done() { time.Sleep(1) }`:                                                                     0,
		`if snap.Capture.StoppedNs > 5 {}`:                                                                  1,
		`time.Sleep(time.Second)`:                                                                           1,
		`f := func() { time.Sleep(1) }; for { f() }`:                                                        1,
		`for range 3 { began := time.Now(); f(); if time.Since(began) > limit {} }`:                         1,
		`for { for { if time.Since(began) > limit {} }; began := time.Now(); if 1 < time.Since(began) {} }`: 1,
		`began := time.Now(); for !done() { if time.Since(began) > limit { t.Fatal() } }`:                   0,
		`for end := time.Now().Add(limit); !done() && time.Now().Before(end); time.Sleep(pause) {}`:         0,
		`for range 100 { if done() { return }; time.Sleep(pause) }`:                                         0,
		`if a.Sub(b) > interval {}`:                                                                         0, // times of the test's own
		`if n > 3 {}; t.Logf("%v", time.Since(began))`:                                                      0,
		`took := time.Since(began); _ = took == 0`:                                                          0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() {\n"+body+"\n}\n", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := timed(file.Decls[0].(*ast.FuncDecl).Body); len(got) != want {
			t.Errorf("%s: %v, want %d", body, got, want)
		}
	}
}

// A fault is one of each test of tier unit or live that reaches it, whatever calls it; a comment that
// begins as it should excuses its own line.
func TestFaultsAreReached(t *testing.T) {
	const source = `package x
func TestUnit(t *testing.T) { helper(t) }
func TestLive(t *testing.T) { testneed.Live(t); h.method() }
func TestLab(t *testing.T) { testneed.Lab(t, testneed.Time); labs(t) }
func TestOwn(t *testing.T) {
	time.Sleep(1)
	time.Sleep(2) // time: the longer, the more it proves
	time.Sleep(3) // not long
}
func helper(t *testing.T) { deeper(t) }
func deeper(t *testing.T) { time.Sleep(1) }
func (h) method() { time.Sleep(1) }
func method() { time.Sleep(1) }
func labs(t *testing.T) { time.Sleep(1) }
func nobody() { time.Sleep(1) }
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x_test.go", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	p := newFunctions(fset)
	p.add(file)
	var got []string
	for _, f := range p.faults() {
		place, _, _ := strings.Cut(f, ": ")
		_, who, _ := strings.Cut(f, "which ")
		got = append(got, place+" "+who)
	}
	want := []string{"x_test.go:11 TestUnit reaches)", "x_test.go:12 TestLive reaches)", "x_test.go:6 TestOwn reaches)", "x_test.go:8 TestOwn reaches)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
