package kcdata

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// edit replaces cut bytes at off by the items in put. The cut bytes are one whole item, or
// none.
type edit struct {
	off, cut int
	put      []byte
	nth      int // number of the call that made the edit
}

// compare orders edits by offset. At one offset insertions come first, in the order of the
// calls. No two edits are equal, so the sort need not be stable.
func (x edit) compare(y edit) int {
	if x.off != y.off {
		return x.off - y.off
	}
	if d := min(x.cut, 1) - min(y.cut, 1); d != 0 {
		return d
	}
	return x.nth - y.nth
}

// InsertBefore puts whole items before p. Several insertions between the same two items keep
// the order of the calls. Nobody may change items until the last WriteTo.
// WriteTo reports an edit that cannot be made.
func (e *Editor) InsertBefore(p Position, items []byte) {
	e.note(p, edit{off: p.off, put: items})
}

// InsertAfter puts whole items behind p; otherwise it is like InsertBefore.
func (e *Editor) InsertAfter(p Position, items []byte) {
	e.note(p, edit{off: p.off + len(p.Bytes()), put: items})
}

// Replace replaces the item at p by whole items. The item must not be the begin or end of a
// container, and can be replaced once. What Patch changed in it is lost. For items see
// InsertBefore.
func (e *Editor) Replace(p Position, items []byte) {
	b := p.Bytes()
	if b != nil && header(b).typ.isStructural() && !header(b).typ.isArray() {
		e.fail(ErrContainerMark, p.off)
	}
	e.note(p, edit{off: p.off, cut: len(b), put: items})
}

// Remove removes the item at p, under the conditions of Replace.
func (e *Editor) Remove(p Position) { e.Replace(p, nil) }

func (e *Editor) note(p Position, x edit) {
	if p.editor != e {
		e.fail(ErrWrongPosition, p.off)
	}
	x.nth = len(e.edits)
	e.edits = append(e.edits, x)
}

// fail remembers the first edit that cannot be made, and why.
func (e *Editor) fail(why error, off int) {
	if e.failed == nil {
		e.failed, e.failedAt = why, off
	}
}

// Len is the number of bytes that WriteTo writes.
func (e *Editor) Len() int {
	n := e.size
	for _, x := range e.edits {
		n += len(x.put) - x.cut
	}
	return n
}

// WriteTo writes the items, with all edits, to out. Errors: those of out; and before it writes
// anything ErrNotRead, or ErrWrongPosition, ErrOverlap or ErrContainerMark for an edit that
// cannot be made, with the container and the offset.
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
		from := 0 // an edit cuts within one run, because no item lies in two
		for len(edits) > 0 && edits[0].off < r.at+len(r.b) {
			x := edits[0]
			write(r.b[from : x.off-r.at])
			write(x.put)
			from, edits = x.off-r.at+x.cut, edits[1:]
		}
		write(r.b[from:])
	}
	for _, x := range edits { // those behind the last item
		write(x.put)
	}
	return n, err
}

// Edited returns what WriteTo writes, for an editor of a whole buffer, and checks it with
// Check. Errors: those of WriteTo and Check.
func (e *Editor) Edited() ([]byte, error) {
	var out bytes.Buffer
	out.Grow(e.Len())
	if _, err := e.WriteTo(&out); err != nil {
		return nil, err
	}
	_, err := Check(out.Bytes())
	return out.Bytes(), err
}

// settle puts the edits in order and reports the first that cannot be made.
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
