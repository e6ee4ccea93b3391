package kcdata

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/golden"
)

const (
	formatDoc   = "../docs/format.md"
	securityDoc = "../docs/security.md"
	linuxSource = "linux*.go"
)

// docs/format.md is what the spec table, Layout, the comments of linux*.go and the
// writer say, put into the words of the template.
func TestFormatDocIsWhatTheSpecSays(t *testing.T) {
	page, err := os.ReadFile("testdata/format.md.tmpl")
	ok(t, err)
	src := readLinuxSource(t)
	doc := string(page)
	for name, text := range map[string]string{
		"records": src.records(t), "constants": src.constants(t), "examples": exampleDumps(t), "elements": elementList(),
		"order": orderTables(), "apple": appleRecords(t), "descs": descTable(t),
	} {
		mark := "{{" + name + "}}"
		if strings.Count(doc, mark) != 1 {
			t.Fatalf("the template has %q %d times", mark, strings.Count(doc, mark))
		}
		doc = strings.ReplaceAll(doc, mark, strings.TrimSpace(text))
	}
	golden.Want(t, formatDoc, []byte(doc))
}

func elementList() string {
	var out []string
	for e := ElemChar; e <= ElemUint64; e++ {
		out = append(out, fmt.Sprintf("%d `%v`", e, e))
	}
	return strings.Join(out, ", ")
}

// orderTables is Layout, a table for each part.
func orderTables() string {
	var b strings.Builder
	for _, part := range []struct {
		Part
		title string
	}{
		{PartBefore, "Before the tasks"}, {PartTask, "In a task's container"}, {PartThread, "In a thread's container"}, {PartAfter, "After the tasks"},
	} {
		fmt.Fprintf(&b, "### %s\n\n| id | name | form | when |\n|---|---|---|---|\n", part.title)
		for _, p := range Layout {
			if p.Part == part.Part {
				s, _ := Lookup(p.Type)
				fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", idOf(p.Type), cmp.Or(p.Desc, s.Name), p.form(), p.when())
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func idOf(t Type) string { return fmt.Sprintf("0x%X", uint32(t)) }

func (p Place) form() string {
	s, _ := Lookup(p.Type)
	switch {
	case p.Desc != "":
		return s.Name
	case s.Bytewise && s.Kind == KindString:
		return "text"
	case s.Bytewise:
		return "bytes"
	case s.Kind == KindContainer:
		return "containers"
	case p.Type == TypeDefinition:
		return "definitions"
	case p.Array:
		return "array"
	}
	return "plain item"
}

func (p Place) when() string {
	out := cmp.Or(p.When, "always")
	if p.Many && p.Type != TypeThread && p.Type != TypeDefinition {
		out += "; any number of items"
	}
	if p.Loose {
		out += "; anywhere"
	}
	return out
}

// places are the parts in which items of a type stand.
func places(t Type) string {
	var out []string
	for _, p := range Layout {
		where := map[Part]string{PartBefore: "before the tasks", PartAfter: "after the tasks", PartTask: "in a task", PartThread: "in a thread"}[p.Part]
		if t < firstLinux { // the comments of ours say it
			where = p.form() + ", " + where
		}
		if p.Type == t && !slices.Contains(out, where) {
			out = append(out, where)
		}
	}
	return strings.Join(out, "; ")
}

// appleRecords explains every id of Apple's that Layout has, with each of its fields.
func appleRecords(t *testing.T) string {
	var ids []Type
	for _, p := range append(Layout, Place{Type: TypeTask}, Place{Type: TypeTransitioningTask}) {
		if p.Desc == "" && p.Type < firstLinux && !slices.Contains(ids, p.Type) {
			ids = append(ids, p.Type)
		}
	}
	slices.Sort(ids)
	var b strings.Builder
	for _, id := range ids {
		s, _ := Lookup(id)
		fmt.Fprintf(&b, "#### `%s` `%s`\n\n", idOf(id), s.Name)
		if s.Kind != KindStruct || len(s.Fields) == 1 {
			if applePlain[id] == "" {
				t.Errorf("nothing says what %s is here", s.Name)
			}
			fmt.Fprintf(&b, "%s.\n\n", upper(colon(applePlain[id], places(id))))
			continue
		}
		fmt.Fprintf(&b, "%s.\n\n", upper(places(id)))
		tableOf(&b, s, func(f Field) string {
			if appleHere[id][f.Name] == "" {
				t.Errorf("nothing says what %s of %s is here", f.Name, s.Name)
			}
			return appleHere[id][f.Name]
		})
	}
	return b.String()
}

func colon(a, b string) string {
	if b == "" {
		return a
	}
	return b + ": " + a
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// tableOf is one table of a record's fields.
func tableOf(b *strings.Builder, s Spec, meaning func(Field) string) {
	fmt.Fprintf(b, "`%s`, %d bytes:\n\n| offset | size | type | field | meaning |\n|---:|---:|---|---|---|\n", s.Key, s.Size())
	for _, f := range s.Fields {
		elem := f.Elem.String()
		if f.Count > 0 {
			elem += fmt.Sprintf("[%d]", f.Count)
		}
		fmt.Fprintf(b, "| %d | %d | `%s` | `%s` | %s |\n", f.Offset, f.Size(), elem, f.Name, meaning(f))
	}
	b.WriteString("\n")
}

func descTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| name | type | meaning |\n|---|---|---|\n")
	for _, p := range Layout {
		if p.Desc == "" {
			continue
		}
		if descHere[p.Desc] == "" {
			t.Errorf("nothing says what %s is here", p.Desc)
		}
		fmt.Fprintf(&b, "| `%s` | `%v` | %s |\n", p.Desc, map[Type]ElemType{TypeUint32Desc: ElemUint32, TypeUint64Desc: ElemUint64}[p.Type], descHere[p.Desc])
	}
	return b.String()
}

// Nothing enters the file without a word on whether it may be a secret.
func TestSecurityDocListsEveryRecord(t *testing.T) {
	doc, err := os.ReadFile(securityDoc)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{} // id → what the row says of secrecy
	row := regexp.MustCompile("(?m)^\\| `(0x[0-9A-Fa-f]+)` `([A-Z0-9_]+)` \\|[^|]*\\| *(secret|not secret|may tell) *\\|")
	for _, m := range row.FindAllStringSubmatch(string(doc), -1) {
		if rows[m[1]+m[2]] != "" {
			t.Errorf("%s %s is listed twice", m[1], m[2])
		}
		rows[m[1]+m[2]] = m[3]
	}
	apple := []Type{TypeTaskSnapshot, TypeTransitioningSnapshot, TypeThreadSnapshot, TypeThreadName, TypeKernStackLR64, TypeUserStackLR64, TypeCPUTimes, TypeBootArgs, TypeOSVersion, TypeCrashProcPath}
	want := 0
	for _, typ := range append(linuxTypes(), apple...) {
		spec, _ := Lookup(typ)
		want++
		if rows[fmt.Sprintf("%#x", uint32(typ))+spec.Name] == "" && rows[fmt.Sprintf("0x%X", uint32(typ))+spec.Name] == "" {
			t.Errorf("%s has no row for 0x%X %s", securityDoc, uint32(typ), spec.Name)
		}
	}
	if len(rows) != want {
		t.Errorf("%d rows in %s, %d types", len(rows), securityDoc, want)
	}
}

func linuxTypes() (out []Type) {
	for typ := range table {
		if typ >= 0x4C00 && typ <= 0x4CFF {
			out = append(out, typ)
		}
	}
	slices.Sort(out)
	return out
}

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

// exampleDumps are whole small buffers, as the writer writes them.
func exampleDumps(t *testing.T) string {
	var b strings.Builder
	for _, e := range []struct {
		title string
		fill  func(ItemWriter)
	}{
		{"A desc: a name of 32 bytes, then the value. 40 bytes of payload, 8 of padding, so flags are `0x88`.", func(w ItemWriter) {
			ok(t, w.Uint64Desc("stackshot_tasks_count", 213))
		}},
		{"A type definition. Its payload: the type, the number of fields, the name; then per field flags, element type, offset, size, name. Three fields of 40 bytes follow the head of 40.", func(w ItemWriter) {
			ok(t, w.Define(TypeLinuxSignals))
		}},
		{"A thread with a kernel stack of three frames, 24 bytes and so 8 of padding: array type `0x28`, flags `0x914` in the upper half and the count in the lower.", func(w ItemWriter) {
			ok(t, w.BeginContainer(TypeThread, 4711))
			ok(t, w.Uint64s(TypeKernStackLR64, []uint64{0xffffffff81a1b2c3, 0xffffffff81a1c000, 0xffffffff810000bd}))
			ok(t, w.EndContainer(4711))
		}},
		{"Text of ours, `web7`: an array of 5 one-byte records, the NUL among them, and 11 bytes of padding.", func(w ItemWriter) {
			ok(t, w.String(TypeLinuxHostname, "web7"))
		}},
		{"An array of records: thread 4711 is number 12 in one deeper pid namespace, and 1 in the one below that.", func(w ItemWriter) {
			ok(t, w.StructArray(TypeLinuxThreadNS, []LinuxThreadNS{{Inode: 4026532201, Tid: 12}, {Inode: 4026532302, Tid: 1}}))
		}},
	} {
		plain := buffer(t, MagicStackshot, e.fill)
		fmt.Fprintf(&b, "%s\n\n```\n%s```\n\n", e.title, annotated(t, plain))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// annotated dumps the items between the markers, each header with its meaning.
func annotated(t *testing.T, plain []byte) string {
	items, err := readAll(plain)
	ok(t, err)
	at := map[int]string{}
	for _, it := range items {
		at[it.Offset] = describe(it)
	}
	var b strings.Builder
	for off := headerSize; off < len(plain)-headerSize; off += 16 {
		fmt.Fprintf(&b, "%04x  % x  %s\n", off-headerSize, plain[off:off+16], at[off])
	}
	return strings.ReplaceAll(b.String(), "  \n", "\n")
}

func describe(it Item) string {
	switch it.Type {
	case TypeContainerBegin:
		return fmt.Sprintf("CONTAINER_BEGIN of %v, id %d", it.ContainerType(), it.ContainerID())
	case TypeContainerEnd:
		return fmt.Sprintf("CONTAINER_END, id %d", it.ContainerID())
	case TypeArray:
		elem, size, count := it.Elem()
		return fmt.Sprintf("array of %v, %d of %d bytes", elem, count, size)
	}
	return it.Type.String()
}

// The dump form itself: 16 bytes a line, in order.
func TestAnnotatedHoldsTheBytes(t *testing.T) {
	plain := buffer(t, MagicStackshot, func(w ItemWriter) { ok(t, w.Uint64Desc("a", 1)) })
	var got []byte
	for line := range strings.Lines(annotated(t, plain)) {
		b, err := hex.DecodeString(strings.ReplaceAll(line[6:53], " ", ""))
		ok(t, err)
		got = append(got, b...)
	}
	if !bytes.Equal(got, plain[headerSize:len(plain)-headerSize]) {
		t.Errorf("dump holds % x", got)
	}
}
