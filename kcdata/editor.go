package kcdata

import (
	"iter"
	"sort"
)

// Editor changes items on their way into a file. It reads items once, with the same checks
// as Reader, and gives the caller the Position of each. The caller inserts, replaces,
// removes and patches there, in any order. WriteTo then writes the result. It neither copies
// nor parses the items that no edit touches, but writes them from where they lie.
//
// The items may come in several pieces, cut anywhere, like the raw bytes of a chain (see
// Chain.Room). The editor copies an item that lies in two pieces, and no others.
//
// An Editor is not safe for concurrent use. Until the last WriteTo the pieces must stay, and
// nobody else may write to them. Patch writes to them.
type Editor struct {
	definitions
	given    []run // not read yet
	runs     []run // in order; no item lies in two
	size     int   // bytes of given and runs
	first    int   // offset of the first item
	marked   bool  // between a begin and an end marker: a whole buffer
	whole    bool  // read to the end
	edits    []edit
	failed   error // why an edit cannot be made; of the first such edit
	failedAt int   // its offset
}

// run is bytes that lie side by side in memory. Offsets count over all runs.
type run struct {
	at int
	b  []byte
}

// Position is the place of an item that an Editor gave. It belongs to that editor. The zero
// Position is no place.
type Position struct {
	editor *Editor
	off    int // of the header
}

// IsZero reports whether p is no place.
func (p Position) IsZero() bool { return p.editor == nil }

// NewEditor edits items without begin and end markers, such as a task's container. pieces,
// concatenated, are whole items.
func NewEditor(pieces ...[]byte) *Editor {
	e := &Editor{given: make([]run, len(pieces))}
	for i, b := range pieces {
		e.given[i] = run{e.size, b}
		e.size += len(b)
	}
	return e
}

// EditBuffer edits a whole buffer, such as NewReader reads. The markers and the bytes behind
// the end marker stay. Errors: those of NewReader.
func EditBuffer(plain []byte) (*Editor, error) {
	r, err := NewReader(plain)
	if err != nil {
		return nil, err
	}
	e := NewEditor(plain)
	e.first, e.marked = r.first, true
	return e, nil
}

// Items reads the items. If the caller does not read them to the end, they cannot be read
// again, and WriteTo refuses to write them. An error ends the items: a *FormatError, or
// ErrNotRead. The Data of an item that lay in two pieces is the editor's copy.
func (e *Editor) Items() iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		w := walk{definitions: &e.definitions, editor: e, todo: e.given}
		switch {
		case e.whole:
			w.todo = e.runs
		case e.given == nil:
			yield(Item{}, ErrNotRead)
			return
		}
		clear(e.inFile)
		e.given, e.fields = nil, 0
		if e.marked {
			e.nextRun(&w)
			w.off = e.first
		}
		e.whole = w.each(yield) || e.whole
	}
}

func (e *Editor) nextRun(w *walk) {
	r := w.todo[0]
	w.data, w.base, w.off, w.todo = r.b, r.at, 0, w.todo[1:]
	if !e.whole {
		e.runs = append(e.runs, r)
	}
}

// join makes the n bytes from w's next item on lie in one run, and returns the rest of that
// run from there. It returns fewer bytes if the items end before. It copies only bytes that
// exist, so that a size on the wire takes no memory.
func (e *Editor) join(w *walk, n int) []byte {
	for w.off == len(w.data) && len(w.todo) > 0 {
		e.nextRun(w)
	}
	rest := w.data[w.off:]
	if len(rest) >= n || w.left() < n || e.whole {
		return rest
	}
	at := w.at()
	e.cutRuns(at)
	one := append(make([]byte, 0, n), rest...)
	for len(one) < n {
		next := &w.todo[0]
		k := min(n-len(one), len(next.b))
		one = append(one, next.b[:k]...)
		next.at, next.b = next.at+k, next.b[k:]
		if len(next.b) == 0 {
			w.todo = w.todo[1:]
		}
	}
	e.runs = append(e.runs, run{at, one})
	w.data, w.base, w.off = one, at, 0
	return one
}

// cutRuns shortens the last run so that it ends at the offset end.
func (e *Editor) cutRuns(end int) {
	last := &e.runs[len(e.runs)-1]
	last.b = last.b[:end-last.at]
	if len(last.b) == 0 {
		e.runs = e.runs[:len(e.runs)-1]
	}
}

// Bytes is the whole item at p, with its header and padding, where it lies; nil for the zero
// Position.
func (p Position) Bytes() []byte {
	if p.editor == nil {
		return nil
	}
	runs := p.editor.runs
	i := sort.Search(len(runs), func(i int) bool { return runs[i].at > p.off }) - 1
	b := runs[i].b[p.off-runs[i].at:]
	n := min(headerSize+int(header(b).size), len(b)) // less if somebody has changed the header since
	return b[:n:n]
}

// Item is the item at p, without its depth. For the zero Position it is the zero Item.
func (p Position) Item() Item {
	b := p.Bytes()
	if len(b) < headerSize {
		return Item{}
	}
	h := header(b)
	it := Item{Type: h.typ, wire: h.typ, Flags: h.flags, Offset: p.off, raw: b[headerSize:], editor: p.editor}
	if it.accept() != nil { // it was sound when it was read
		return Item{}
	}
	return it
}
