package testneed

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Only 1 makes tests long: not an empty word, and not any other.
func TestLength(t *testing.T) {
	for value, want := range map[string]int{"": 2, "0": 2, "1": 50, "yes": 2} {
		t.Setenv(LongVar, value)
		if n := Length(2, 50); n != want {
			t.Errorf("%s=%q: %d, want %d", LongVar, value, n, want)
		}
	}
}

// A skipped test names the program and its package; with nothing to be missing it
// fails instead.
func TestMissingProgramIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, all := range []string{"", "1"} {
		t.Setenv("STACKSHOT_REQUIRE_BPF", all)
		tb := &ended{}
		done := make(chan struct{})
		go func() { // Skipf and Fatalf end the goroutine
			defer close(done)
			Program(tb, "go", "clang++-19")
			tb.said = "goes on"
		}()
		<-done
		if want := "needs go (package go), clang++-19 (package clang-19)"; tb.said != want || tb.failed != (all == "1") {
			t.Errorf("STACKSHOT_REQUIRE_BPF=%s: %q, failed %v", all, tb.said, tb.failed)
		}
	}
}

// What is asked for is what .ci/run installs.
func TestPackagesAreInstalled(t *testing.T) {
	run, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, part := range strings.Split(string(run), "packages=(")[1:] {
		names, _, _ := strings.Cut(part, ")")
		list = append(list, strings.Fields(names)...)
	}
	for _, p := range Packages() {
		if !slices.Contains(list, p) && p != "gcc" && p != "mount" && p != "util-linux" { // those it finds
			t.Errorf(".ci/run installs no %s: %s", p, list)
		}
	}
}

// Whoever starts a program that is not on every machine asks for it in the same
// package: the tests that need root and BPF too, which the step of .ci/run that has
// only Go, gcc and git does not reach.
func TestProgramsAreAskedFor(t *testing.T) {
	Slow(t)
	files, started, asked := 0, map[string][]string{}, map[string][]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		forTests := strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".go") && strings.Contains(path, "/userlab/")
		if err != nil || d.IsDir() || !forTests || strings.Contains(path, "/testdata/") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		files++
		ast.Inspect(f, func(n ast.Node) bool {
			dir := filepath.Dir(path)
			switch n := n.(type) {
			case *ast.CallExpr:
				is, needs := programs(n)
				started[dir], asked[dir] = append(started[dir], is...), append(asked[dir], needs...)
			case *ast.KeyValueExpr: // userlab.Actor's Needs
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Needs" {
					ast.Inspect(n.Value, func(n ast.Node) bool { asked[dir] = append(asked[dir], literal(n)...); return true })
				}
			}
			return true
		})
		return nil
	})
	if err != nil || files < 200 {
		t.Errorf("%d files: %v", files, err)
	}
	seen := map[string]bool{}
	for dir, list := range started {
		for _, p := range list {
			if seen[p] = true; !slices.Contains(base, p) && !strings.Contains(p, "/") && !slices.Contains(asked[dir], p) {
				t.Errorf("%s starts %s and does not ask for it: testneed.Program", dir, p)
			}
		}
	}
	if !seen["gdb"] || !seen["readelf"] || !seen["python3"] {
		t.Errorf("of the programs that tests start only %v were found", seen)
	}
}

// programs gives what a call starts by name, and what it asks for.
func programs(call *ast.CallExpr) (started, asked []string) {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil, nil
	}
	pkg, _ := fun.X.(*ast.Ident)
	if pkg == nil {
		return nil, nil
	}
	switch pkg.Name + "." + fun.Sel.Name {
	case "exec.Command", "exec.LookPath":
		return literal(call.Args[0]), nil
	case "exec.CommandContext":
		return literal(call.Args[1]), nil
	case "testneed.Program", "testneed.Have":
		for _, a := range call.Args {
			asked = append(asked, literal(a)...)
		}
	}
	return nil, asked
}

// literal is a string that stands in the code; none for anything else.
func literal(n ast.Node) []string {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return nil
	}
	s, _ := strconv.Unquote(lit.Value)
	return []string{s}
}

// ended notes how a test was ended.
type ended struct {
	testing.TB
	said   string
	failed bool
}

func (e *ended) Helper() {}

func (e *ended) Skipf(format string, args ...any) {
	e.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (e *ended) Fatalf(format string, args ...any) {
	e.failed = true
	e.Skipf(format, args...)
}
