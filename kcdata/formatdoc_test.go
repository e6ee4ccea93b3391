package kcdata_test

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/testread"
	. "stackshot/kcdata" // the package under test, which its test helpers import
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
	OK(t, err)
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
		testread.Part
		title string
	}{
		{testread.PartBefore, "Before the tasks"}, {testread.PartTask, "In a task's container"}, {testread.PartThread, "In a thread's container"}, {testread.PartAfter, "After the tasks"},
	} {
		fmt.Fprintf(&b, "### %s\n\n| id | name | form | when |\n|---|---|---|---|\n", part.title)
		for _, p := range testread.Layout {
			if p.Part == part.Part {
				s, _ := Lookup(p.Type)
				fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", idOf(p.Type), cmp.Or(p.Desc, s.Name), formOf(p), whenOf(p))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func idOf(t Type) string { return fmt.Sprintf("0x%X", uint32(t)) }

func formOf(p testread.Place) string {
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

func whenOf(p testread.Place) string {
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
	for _, p := range testread.Layout {
		where := map[testread.Part]string{testread.PartBefore: "before the tasks", testread.PartAfter: "after the tasks", testread.PartTask: "in a task", testread.PartThread: "in a thread"}[p.Part]
		if t < FirstLinux { // the comments of ours say it
			where = formOf(p) + ", " + where
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
	for _, p := range append(testread.Layout, testread.Place{Type: TypeTask}, testread.Place{Type: TypeTransitioningTask}) {
		if p.Desc == "" && p.Type < FirstLinux && !slices.Contains(ids, p.Type) {
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
	for _, p := range testread.Layout {
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

func linuxTypes() (out []Type) {
	for typ := FirstLinux; typ <= LastLinux; typ++ {
		if _, known := Lookup(typ); known {
			out = append(out, typ)
		}
	}
	return out
}

// exampleDumps are whole small buffers, as the writer writes them.
func exampleDumps(t *testing.T) string {
	var b strings.Builder
	for _, e := range []struct {
		title string
		fill  func(ItemWriter)
	}{
		{"A desc: a name of 32 bytes, then the value. 40 bytes of payload, 8 of padding, so flags are `0x88`.", func(w ItemWriter) {
			OK(t, w.Uint64Desc("stackshot_tasks_count", 213))
		}},
		{"A type definition. Its payload: the type, the number of fields, the name; then per field flags, element type, offset, size, name. Three fields of 40 bytes follow the head of 40.", func(w ItemWriter) {
			OK(t, w.Define(TypeLinuxSignals))
		}},
		{"A thread with a kernel stack of three frames, 24 bytes and so 8 of padding: array type `0x28`, flags `0x914` in the upper half and the count in the lower.", func(w ItemWriter) {
			OK(t, w.BeginContainer(TypeThread, 4711))
			OK(t, w.Uint64s(TypeKernStackLR64, []uint64{0xffffffff81a1b2c3, 0xffffffff81a1c000, 0xffffffff810000bd}))
			OK(t, w.EndContainer(4711))
		}},
		{"Text of ours, `web7`: an array of 5 one-byte records, the NUL among them, and 11 bytes of padding.", func(w ItemWriter) {
			OK(t, w.String(TypeLinuxHostname, "web7"))
		}},
		{"An array of records: thread 4711 is number 12 in one deeper pid namespace, and 1 in the one below that.", func(w ItemWriter) {
			OK(t, w.StructArray(TypeLinuxThreadNS, []LinuxThreadNS{{Inode: 4026532201, Tid: 12}, {Inode: 4026532302, Tid: 1}}))
		}},
	} {
		plain := Buffer(t, MagicStackshot, e.fill)
		fmt.Fprintf(&b, "%s\n\n```\n%s```\n\n", e.title, annotated(t, plain))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// annotated dumps the items between the markers, each header with its meaning.
func annotated(t *testing.T, plain []byte) string {
	items, err := ReadAll(plain)
	OK(t, err)
	at := map[int]string{}
	for _, it := range items {
		at[it.Offset] = describe(it)
	}
	var b strings.Builder
	for off := HeaderSize; off < len(plain)-HeaderSize; off += 16 {
		fmt.Fprintf(&b, "%04x  % x  %s\n", off-HeaderSize, plain[off:off+16], at[off])
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
	plain := Buffer(t, MagicStackshot, func(w ItemWriter) { OK(t, w.Uint64Desc("a", 1)) })
	var got []byte
	for line := range strings.Lines(annotated(t, plain)) {
		b, err := hex.DecodeString(strings.ReplaceAll(line[6:53], " ", ""))
		OK(t, err)
		got = append(got, b...)
	}
	if !bytes.Equal(got, plain[HeaderSize:len(plain)-HeaderSize]) {
		t.Errorf("dump holds % x", got)
	}
}
