package kcdata

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// edit puts items in the place of cut bytes at off: of none, or of one whole item.
type edit struct {
	off, cut int
	put      []byte
}

func (a edit) compare(b edit) int {
	if a.off != b.off {
		return a.off - b.off
	}
	return min(a.cut, 1) - min(b.cut, 1)
}

// fault is an edit that is not to be made.
type fault struct {
	err error
	off int
}

// InsertBefore puts whole items before p. Of several insertions between the same two
// items the first comes first. items stay the caller's, unchanged, until the last
// WriteTo or Own. An edit that cannot be made is an error of WriteTo.
func (e *Editor) InsertBefore(p Position, items []byte) {
	if e.ours(p) {
		e.edits = append(e.edits, edit{off: p.off, put: items})
	}
}

// InsertAfter is InsertBefore, behind p.
func (e *Editor) InsertAfter(p Position, items []byte) {
	if e.ours(p) {
		e.edits = append(e.edits, edit{off: p.off + len(p.Bytes()), put: items})
	}
}

// Replace puts whole items in the place of one, which is no container's begin or
// end. It is done once for an item; what Patch did to that is gone. items are as
// those of InsertBefore.
func (e *Editor) Replace(p Position, items []byte) {
	if !e.ours(p) {
		return
	}
	b := p.Bytes()
	if t := header(b).typ; t == TypeContainerBegin || t == TypeContainerEnd {
		e.fail(ErrContainerMark, p.off)
		return
	}
	e.edits = append(e.edits, edit{p.off, len(b), items})
}

// Remove takes an item out, as Replace does.
func (e *Editor) Remove(p Position) { e.Replace(p, nil) }

func (e *Editor) ours(p Position) bool {
	if p.editor != e {
		e.fail(ErrWrongPosition, p.off)
	}
	return p.editor == e
}

func (e *Editor) fail(err error, off int) {
	if e.failed.err == nil {
		e.failed = fault{err, off}
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
// ErrNotRead, ErrWrongPosition; ErrOverlap and ErrContainerMark, which name the item
// and the containers around it.
func (e *Editor) WriteTo(out io.Writer) (int64, error) {
	if err := e.settle(); err != nil {
		return 0, err
	}
	o := output{out: out, runs: e.runs}
	for _, x := range e.edits {
		o.copy(x.off)
		o.write(x.put)
		o.skip(x.off + x.cut)
	}
	o.copy(e.size)
	return o.n, o.err
}

// Edited is what WriteTo writes of a whole buffer, in memory of its own, when Check
// has found it sound. Errors: those of WriteTo and Check.
func (e *Editor) Edited() ([]byte, error) {
	var out bytes.Buffer
	out.Grow(e.Len())
	if _, err := e.WriteTo(&out); err != nil {
		return nil, err
	}
	if _, err := Check(out.Bytes()); err != nil {
		return nil, fmt.Errorf("edited: %w", err)
	}
	return out.Bytes(), nil
}

// settle puts the edits in order. Of those at one offset insertions are first.
func (e *Editor) settle() error {
	if !e.whole {
		return ErrNotRead
	}
	if !slices.IsSortedFunc(e.edits, edit.compare) { // mostly it is
		slices.SortStableFunc(e.edits, edit.compare)
	}
	for i := 1; i < len(e.edits); i++ {
		if was, is := &e.edits[i-1], &e.edits[i]; is.off == was.off && was.cut > 0 {
			e.fail(ErrOverlap, is.off)
		}
	}
	return e.explain()
}

// explain says what the failed edit was of: the item, and the containers around it;
// of a position of another editor, or none, what this one has.
func (e *Editor) explain() error {
	f := e.failed
	if f.err == nil {
		return nil
	}
	var in []string
	for it := range e.Items() { // whole: no error
		if it.Offset >= f.off && f.err != ErrWrongPosition {
			in = append(in, fmt.Sprintf("%v, bytes %d to %d of %d", it.Type, it.Offset, it.Offset+headerSize+len(it.raw), e.size))
			break
		}
		switch {
		case it.Type == TypeContainerEnd && f.err != ErrWrongPosition:
			in = in[:len(in)-1]
		case it.Type == TypeContainerBegin:
			in = append(in, fmt.Sprintf("%v %d", it.ContainerType(), it.ContainerID()))
		}
		if f.err == ErrWrongPosition {
			in = append(in, fmt.Sprintf("byte %d of another, or none", f.off))
			break
		}
	}
	slices.Reverse(in)
	return fmt.Errorf("%w: %s", f.err, strings.Join(in, ", in "))
}

// output writes runs from their beginning, in part. After an error it does nothing.
type output struct {
	out  io.Writer
	runs []run // what is left begins in the first
	off  int
	n    int64
	err  error
}

// copy writes everything up to the offset end.
func (o *output) copy(end int) {
	for o.off < end {
		r := o.runs[0]
		to := min(end, r.at+len(r.b))
		o.write(r.b[o.off-r.at : to-r.at])
		o.skip(to)
	}
}

// skip goes to the offset to.
func (o *output) skip(to int) {
	for o.off = to; len(o.runs) > 0 && o.off >= o.runs[0].at+len(o.runs[0].b); {
		o.runs = o.runs[1:]
	}
}

func (o *output) write(b []byte) {
	if o.err != nil || len(b) == 0 {
		return
	}
	var n int
	n, o.err = o.out.Write(b)
	o.n += int64(n)
}
