package kcdata_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "stackshot/kcdata" // the package under test, which its test helpers import
)

// linuxDoc is what linux*.go say in its comments.
type linuxDoc struct {
	types   map[Type]string              // comment of the id
	structs map[string]map[string]string // struct → field → comment
	about   map[string]string            // struct → doc comment
	groups  []constGroup
}

type constGroup struct {
	about string
	rows  []constRow
}

type constRow struct{ name, value, comment string }

func readLinuxSource(t *testing.T) *linuxDoc {
	t.Helper()
	d := &linuxDoc{types: map[Type]string{}, structs: map[string]map[string]string{}, about: map[string]string{}}
	files, err := filepath.Glob(linuxSource)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		d.read(t, f)
	}
	return d
}

func (d *linuxDoc) read(t *testing.T, f *ast.File) {
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		switch g.Tok {
		case token.CONST:
			d.readConsts(t, g)
		case token.TYPE:
			d.readStruct(g)
		}
	}
}

func (d *linuxDoc) readConsts(t *testing.T, g *ast.GenDecl) {
	group := constGroup{about: oneLine(g.Doc.Text())}
	for _, s := range g.Specs {
		v := s.(*ast.ValueSpec)
		comment := oneLine(v.Comment.Text())
		if id, ok := v.Type.(*ast.Ident); ok && id.Name == "Type" {
			n, err := strconv.ParseUint(v.Values[0].(*ast.BasicLit).Value, 0, 32)
			if err != nil {
				t.Fatal(err)
			}
			d.types[Type(n)] = comment
			continue
		}
		group.rows = append(group.rows, constRow{v.Names[0].Name, constValue(v.Values[0]), comment})
	}
	if len(group.rows) > 0 {
		d.groups = append(d.groups, group)
	}
}

// constValue writes 7 or 1<<3 as it stands in the source.
func constValue(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Value
	case *ast.BinaryExpr:
		return constValue(e.X) + " " + e.Op.String() + " " + constValue(e.Y)
	}
	return "?"
}

func (d *linuxDoc) readStruct(g *ast.GenDecl) {
	for _, s := range g.Specs {
		spec := s.(*ast.TypeSpec)
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		fields := map[string]string{}
		for _, f := range st.Fields.List {
			name, _, _ := strings.Cut(tagOf(f), ",")
			fields[name] = oneLine(f.Comment.Text())
		}
		d.structs[spec.Name.Name] = fields
		d.about[spec.Name.Name] = oneLine(g.Doc.Text())
	}
}

func tagOf(f *ast.Field) string {
	tag := strings.Trim(f.Tag.Value, "`")
	return strings.TrimSuffix(strings.TrimPrefix(tag, `kc:"`), `"`)
}

func oneLine(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

var structName = regexp.MustCompile(`Linux[A-Za-z]+`)

// records is one table per type.
func (d *linuxDoc) records(t *testing.T) string {
	var b strings.Builder
	for _, typ := range linuxTypes() {
		spec, _ := Lookup(typ)
		comment, ok := d.types[typ]
		if !ok {
			t.Fatalf("%s has no id %#x", linuxSource, uint32(typ))
		}
		fmt.Fprintf(&b, "#### `%s` `%s`\n\n", idOf(typ), spec.Name)
		if spec.Kind != KindStruct {
			fmt.Fprintf(&b, "%s: %s.\n\n", upper(places(typ)), comment)
			continue
		}
		name := structName.FindString(comment)
		if d.structs[name] == nil {
			t.Fatalf("the comment of %#x names no struct: %q", uint32(typ), comment)
		}
		fmt.Fprintf(&b, "%s: %s. %s\n\n", upper(places(typ)), comment, d.about[name])
		d.table(t, &b, spec, name)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (d *linuxDoc) table(t *testing.T, b *strings.Builder, spec Spec, name string) {
	tableOf(b, spec, func(f Field) string {
		comment, ok := d.structs[name][f.Name]
		if !ok {
			t.Fatalf("%s has no field %s in %s", name, f.Name, linuxSource)
		}
		return comment
	})
}

// constants is one table per group of values.
func (d *linuxDoc) constants(t *testing.T) string {
	var b strings.Builder
	for _, g := range d.groups {
		fmt.Fprintf(&b, "%s\n\n| name | value | meaning |\n|---|---|---|\n", g.about)
		for _, r := range g.rows {
			if r.comment == "" && len(g.rows) > 1 {
				t.Errorf("nothing says what %s is", r.name)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.name, r.value, r.comment)
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
