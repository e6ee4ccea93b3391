package main

import (
	"cmp"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// row is a line of the packages' table in architecture.md.
type row struct {
	place  int             // from the top
	ours   map[string]bool // packages of the project that it may import
	others []string        // words of other modules' paths
}

// The table of architecture.md has every package, with just the imports that it has,
// each further down than who imports it.
func TestArchitecture(t *testing.T) {
	const root = "../.."
	table := architecture(t, root+"/docs/architecture.md")
	real := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return cmp.Or(err, fs.SkipDir)
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			return imports(real, table, strings.TrimPrefix(path, root+"/"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range table {
		missing := maps.Clone(r.ours)
		for path := range real[name] {
			short, ours := strings.CutPrefix(path, "stackshot/")
			switch to := rowOf(table, short); {
			case !ours:
				if !slices.ContainsFunc(r.others, func(word string) bool { return strings.Contains(path, word) }) {
					t.Errorf("%s imports %s, which its row does not say", name, path)
				}
			case !r.ours[to]:
				t.Errorf("%s imports %s, which its row does not say", name, to)
			case table[to].place < r.place:
				t.Errorf("%s imports %s, which stands above it", name, to)
				fallthrough
			default:
				delete(missing, to)
			}
		}
		if len(missing) > 0 || real[name] == nil {
			t.Errorf("%s (found: %v) does not import %v", name, real[name] != nil, missing)
		}
	}
}

// rowOf is the row of a package, or of the one that it lies in.
func rowOf(table map[string]*row, pkg string) string {
	for table[pkg] == nil && pkg != "." {
		pkg = filepath.Dir(pkg)
	}
	return pkg
}

// imports adds what a file imports beside std and x/sys to its package in real. Files
// that `go build` never takes (generators) do not count.
func imports(real map[string]map[string]bool, table map[string]*row, file string) error {
	f, err := parser.ParseFile(token.NewFileSet(), "../../"+file, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	for _, group := range f.Comments {
		if strings.HasPrefix(group.List[0].Text, "//go:build ignore") {
			return nil
		}
	}
	pkg := rowOf(table, filepath.Dir(file))
	if table[pkg] == nil {
		return fmt.Errorf("%s: its package has no row", file)
	}
	if real[pkg] == nil {
		real[pkg] = map[string]bool{}
	}
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(path, "/")
		short, ours := strings.CutPrefix(path, "stackshot/")
		if strings.Contains(first, ".") && !strings.HasPrefix(path, "golang.org/x/sys/") || ours && rowOf(table, short) != pkg {
			real[pkg][path] = true
		}
	}
	return nil
}

// architecture reads the table. In it packages are named by their paths, and imports
// without internal/.
func architecture(t *testing.T, file string) map[string]*row {
	text := read(t, file)
	_, text2, _ := strings.Cut(string(text), "\n## Packages\n")
	section, _, _ := strings.Cut(text2, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .* \\| ([^|]*) \\|$").FindAllStringSubmatch(section, -1)
	table, full := map[string]*row{}, map[string]string{}
	for i, m := range rows {
		table[m[1]] = &row{place: i, ours: map[string]bool{}}
		full[strings.TrimPrefix(m[1], "internal/")] = m[1]
	}
	for _, m := range rows {
		for _, word := range strings.Split(m[2], ", ") {
			switch name, ours := strings.CutPrefix(word, "`"); {
			case ours && full[strings.Trim(name, "`")] == "":
				t.Errorf("%s: no package %s", m[1], word)
			case ours:
				table[m[1]].ours[full[strings.Trim(name, "`")]] = true
			case word != "nothing":
				module, _, _ := strings.Cut(word, " (")
				table[m[1]].others = append(table[m[1]].others, module)
			}
		}
	}
	return table
}
