package kcdata

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// edit puts items in the place of cut bytes at off: of none, or of one whole item.
type edit struct {
	off, cut int
	put      []byte
	nth      int // of the calls
}

// compare orders edits; of those at one offset insertions are first, and the first
// of them. No two are equal: a sort need not be stable.
func (x edit) compare(y edit) int {
	if x.off != y.off {
		return x.off - y.off
	}
	if d := min(x.cut, 1) - min(y.cut, 1); d != 0 {
		return d
	}
	return x.nth - y.nth
}

// InsertBefore puts whole items before p. Of several insertions between the same two
// items the first comes first. items stay the caller's, unchanged, until the last
// WriteTo or Own. An edit that cannot be made is an error of WriteTo.
func (e *Editor) InsertBefore(p Position, items []byte) {
	e.note(p, edit{off: p.off, put: items})
}

// InsertAfter is InsertBefore, behind p.
func (e *Editor) InsertAfter(p Position, items []byte) {
	e.note(p, edit{off: p.off + len(p.Bytes()), put: items})
}

// Replace puts whole items in the place of one, which is no container's begin or
// end. It is done once for an item; what Patch did to that is gone. items are as
// those of InsertBefore.
func (e *Editor) Replace(p Position, items []byte) {
	b := p.Bytes()
	if b != nil && header(b).typ.isStructural() && !header(b).typ.isArray() {
		e.fail(ErrContainerMark, p.off)
	}
	e.note(p, edit{off: p.off, cut: len(b), put: items})
}

// Remove takes an item out, as Replace does.
func (e *Editor) Remove(p Position) { e.Replace(p, nil) }

func (e *Editor) note(p Position, x edit) {
	if p.editor != e {
		e.fail(ErrWrongPosition, p.off)
	}
	x.nth = len(e.edits)
	e.edits = append(e.edits, x)
}

// fail keeps the first edit that cannot be made.
func (e *Editor) fail(why error, off int) {
	if e.failed == nil {
		e.failed, e.failedAt = why, off
	}
}

// Own copies what was put in so far: for edits that are to outlive their callers'
// memory.
func (e *Editor) Own() {
	for i := range e.edits {
		e.edits[i].put = bytes.Clone(e.edits[i].put)
	}
}

// Len is how many bytes WriteTo writes.
func (e *Editor) Len() int {
	n := e.size
	for _, x := range e.edits {
		n += len(x.put) - x.cut
	}
	return n
}

// WriteTo streams the items, edits made. Errors: out's; before anything is written
// ErrNotRead, and ErrWrongPosition, ErrOverlap or ErrContainerMark, which say in
// what container of this editor's, and where.
func (e *Editor) WriteTo(out io.Writer) (n int64, err error) {
	if err := e.settle(); err != nil {
		return 0, err
	}
	write := func(b []byte) {
		if err == nil && len(b) > 0 {
			var m int
			m, err = out.Write(b)
			n += int64(m)
		}
	}
	edits := e.edits
	for _, r := range e.runs {
		from := 0 // an edit cuts within one run, for an item lies in one
		for len(edits) > 0 && edits[0].off < r.at+len(r.b) {
			x := edits[0]
			write(r.b[from : x.off-r.at])
			write(x.put)
			from, edits = x.off-r.at+x.cut, edits[1:]
		}
		write(r.b[from:])
	}
	for _, x := range edits { // behind the last item
		write(x.put)
	}
	return n, err
}

// Edited is what WriteTo writes of a whole buffer, in memory of its own, when Check
// has found it sound. Errors: those of WriteTo and Check.
func (e *Editor) Edited() ([]byte, error) {
	var out bytes.Buffer
	out.Grow(e.Len())
	if _, err := e.WriteTo(&out); err != nil {
		return nil, err
	}
	_, err := Check(out.Bytes())
	return out.Bytes(), err
}

// settle puts the edits in order.
func (e *Editor) settle() error {
	if !e.whole {
		return ErrNotRead
	}
	slices.SortFunc(e.edits, edit.compare)
	for i := 1; i < len(e.edits); i++ {
		if was, is := &e.edits[i-1], &e.edits[i]; is.off == was.off && was.cut > 0 {
			e.fail(ErrOverlap, is.off)
		}
	}
	if e.failed == nil {
		return nil
	}
	in := "no container"
	for it := range e.Items() { // whole: no error
		if it.Type == TypeContainerBegin && it.Depth == 0 && (it.Offset == 0 || it.Offset <= e.failedAt) {
			in = fmt.Sprintf("%v %d", it.ContainerType(), it.ContainerID())
		}
	}
	return fmt.Errorf("%w: at byte %d of %d, in %s", e.failed, e.failedAt, e.size, in)
}
