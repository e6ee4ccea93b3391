package kcdata

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Text writes plain, one whole buffer, as lines. An item is a line
//
//	@OFFSET NAME type=T size=N flags=F …
//
// with the offset in hexadecimal; a container begin or an array says of what.
// Its payload follows, one indent deeper, as lines
//
//	+OFFSET TYPE LABEL = VALUE…
//
// with the offset in decimal, from the start of the payload. TYPE is an element
// type, with [n] if there are several values; char[n] is one quoted string
// without the NULs at its end, hex[n] is bytes in hexadecimal. Bytes that no line
// shows are zero, so the lines hold the whole buffer: they give every payload,
// whatever its type. A payload line belongs to the last item line before it.
// Containers and nested buffers are indented.
//
// A string or bytes of more than 64 KiB take several lines.
//
// Text writes a damaged buffer as far as it is sound and then returns the error. The text
// has at most about most bytes. If it would have more, Text returns ErrTooLarge with the
// offset of the item that it did not write to its end.
func Text(w io.Writer, plain []byte, most int64) error {
	b := bufio.NewWriter(w)
	t := &textWriter{w: b, most: most, left: most}
	err := t.buffer(plain, 0, 0)
	if ferr := b.Flush(); err == nil {
		err = ferr
	}
	return err
}

// textWriter does not check write errors: the bufio.Writer keeps the first one.
type textWriter struct {
	w      *bufio.Writer
	r      *Reader
	indent int
	line   []byte // of the payload line under construction
	most   int64  // bytes that may be written
	left   int64  // bytes that may still be written
}

// buffer writes plain, which begins at offset base of the file.
func (t *textWriter) buffer(plain []byte, base, nested int) error {
	r, err := NewReader(plain)
	if err != nil {
		return err
	}
	outer, indent := t.r, t.indent
	t.r = r
	defer func() { t.r, t.indent = outer, indent }()

	t.head(base, header(plain), "")
	t.indent++
	t.hex("begin", plain[headerSize:r.first], 0)
	w := r.walk()
	for {
		it, err := w.next()
		if err != nil {
			return err
		}
		if it.Type == BufferEnd {
			t.indent = indent
			t.head(base+it.Offset, header(plain[it.Offset:]), "")
			return nil
		}
		t.indent = indent + 1 + it.Depth
		if t.item(it, base, nested); t.left < 0 {
			return badf(base+it.Offset, ErrTooLarge, "text of more than %d bytes, %d bytes of the file are left", t.most, len(plain)-it.Offset)
		}
	}
}

// head writes an item's own line.
func (t *textWriter) head(off int, h itemHeader, note string) {
	s, ok := t.r.Spec(h.typ)
	if !ok {
		s.Name = "UNKNOWN"
	}
	if h.typ.isCompactArray() {
		s.Name = "ARRAY"
	}
	n, _ := fmt.Fprintf(t.w, "%*s@%08x %s type=%#x size=%d flags=%#x%s\n", 2*t.indent, "", off, label(s.Name), uint32(h.typ), h.size, h.flags, note)
	t.left -= int64(n)
}

// write writes the payload line under construction.
func (t *textWriter) write() {
	t.left -= int64(len(t.line))
	t.w.Write(t.line)
}

// label makes a name from the file safe to print.
func label(s string) string {
	ok := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '?'
	}
	if s == "" {
		return "?"
	}
	return strings.Map(ok, s)
}

func (t *textWriter) item(it Item, base, nested int) {
	h := itemHeader{typ: it.wire, size: uint64(len(it.raw)), flags: it.Flags}
	t.head(base+it.Offset, h, t.note(it))
	t.indent++
	done := 0 // bytes of the payload that the lines have
	switch {
	case it.Type == TypeArray:
		done = t.array(it)
	case it.Type == TypeNested && nested < MaxNested:
		done = t.nested(it, base, nested)
	case it.Type == TypeContainerBegin:
		done = t.fields([]Field{{Name: "type", Elem: ElemUint32}}, it.Data, 0, "")
	case it.Type == TypeDefinition:
		done = t.fields(definitionFields(it.Data), it.Data, 0, "")
	default:
		done = t.payload(it)
	}
	t.hex("rest", it.raw[done:], done)
}

// note is the type of a container and its id, or the type, number and size of an array's
// elements.
func (t *textWriter) note(it Item) string {
	name := func(ty Type) string {
		if s, ok := t.r.Spec(ty); ok {
			return label(s.Name)
		}
		return fmt.Sprintf("%#x", uint32(ty))
	}
	switch it.Type {
	case TypeContainerBegin:
		return fmt.Sprintf(" %s id=%d", name(it.ContainerType()), it.ContainerID())
	case TypeContainerEnd:
		return fmt.Sprintf(" id=%d", it.ContainerID())
	case TypeArray:
		ty, size, count := it.Elem()
		return fmt.Sprintf(" %s count=%d element=%d", name(ty), count, size)
	}
	return ""
}

func (t *textWriter) array(it Item) int {
	ty, size, count := it.Elem()
	s, _ := t.r.Spec(ty)
	if isText, ok := s.byteRecord(size); ok {
		if !isText {
			return 0 // hex is shorter
		}
		return t.fields(pieces(Field{Elem: ElemChar, Count: count}), it.Data, 0, "")
	}
	fields := linesOf(s, size)
	for i := 0; i < count && t.left >= 0; i++ {
		at := i * size
		done := t.fields(fields, it.Data[at:at+size], at, "["+strconv.Itoa(i)+"]")
		t.hex("["+strconv.Itoa(i)+"]", it.Data[at+done:at+size], at+done)
	}
	return size * count
}

// nested writes a nested buffer as items, if it is sound; otherwise hex has to. It first
// writes the bytes behind that buffer, because a payload line belongs to the last item line
// before it.
func (t *textWriter) nested(it Item, base, nested int) int {
	n, err := Check(it.Data)
	if err != nil {
		return 0
	}
	t.hex("rest", it.raw[n:], n)
	if t.buffer(it.Data, base+it.Offset+headerSize, nested+1) != nil && t.left >= 0 {
		return 0
	}
	return len(it.raw)
}

func (t *textWriter) payload(it Item) int {
	if _, _, ok := it.Desc(); ok {
		return t.fields(descFields(it.Type, len(it.Data)-descName), it.Data, 0, "")
	}
	s, _ := t.r.Spec(it.Type)
	return t.fields(linesOf(s, len(it.Data)), it.Data, 0, "")
}
