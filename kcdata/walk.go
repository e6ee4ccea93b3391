package kcdata

// walk is the state of one pass over items. Readers and editors share it, so that both
// refuse the same bytes.
type walk struct {
	definitions *definitions
	data        []byte           // the bytes to read; for an editor one run
	off         int              // of the next item, in data
	base        int              // offset of data in the buffer
	editor      *Editor          // that data is a run of; nil: data is the whole buffer
	todo        []run            // of the editor, not begun
	open        [MaxDepth]uint64 // ids of the open containers
	depth       int
}

func (r *Reader) walk() walk {
	return walk{definitions: &r.definitions, data: r.data, off: r.first}
}

// at is the offset of the next item.
func (w *walk) at() int { return w.base + w.off }

// left is how many bytes there are from the next item on.
func (w *walk) left() int {
	if w.editor != nil {
		return w.editor.size - w.at()
	}
	return len(w.data) - w.off
}

// each yields the items up to the end or to the first error, which it yields, too. done
// says that it came to the end.
func (w *walk) each(yield func(Item, error) bool) (done bool) {
	for {
		it, err := w.next()
		if err != nil {
			yield(Item{}, err)
			return false
		}
		if it.Type == BufferEnd {
			return true
		}
		if !yield(it, nil) {
			return false
		}
	}
}

func (w *walk) next() (Item, error) {
	rest := w.data[w.off:]
	if len(rest) < headerSize && w.editor != nil {
		rest = w.editor.join(w, headerSize)
	}
	if len(rest) < headerSize {
		if w.editor != nil && !w.editor.marked && w.left() == 0 {
			return w.end() // of items without markers
		}
		return Item{}, badf(w.at(), ErrTruncated, "%d bytes left, no end marker", w.left())
	}
	h := header(rest)
	if h.typ == BufferEnd {
		return w.end()
	}
	n := headerSize + int(h.size)
	if len(rest) < n && w.editor != nil {
		rest = w.editor.join(w, n)
	}
	if len(rest) < n {
		return Item{}, badf(w.at(), ErrTruncated, "item %v of %d bytes, %d left", h.typ, h.size, w.left()-headerSize)
	}
	it := Item{Type: h.typ, Flags: h.flags, Offset: w.at(), Depth: w.depth, wire: h.typ, raw: rest[headerSize:n:n], editor: w.editor}
	if err := w.accept(&it); err != nil {
		return Item{}, err
	}
	w.off += n
	return it, nil
}

func (w *walk) end() (Item, error) {
	if w.depth > 0 {
		return Item{}, badf(w.at(), ErrBadContainer, "end of buffer inside container %d", w.open[w.depth-1])
	}
	if e := w.editor; e != nil && !e.marked && w.left() > 0 {
		return Item{}, badf(w.at(), ErrBadContainer, "an end marker among items")
	}
	return Item{Type: BufferEnd, Offset: w.at()}, nil
}

// accept checks it.raw by the item's class and sets it.Data.
func (w *walk) accept(it *Item) error {
	switch it.Type {
	case TypeContainerBegin:
		return w.enter(it)
	case TypeContainerEnd:
		return w.leave(it)
	}
	err := it.accept()
	if err == nil && it.Type == TypeDefinition {
		return w.learn(it)
	}
	return err
}

// accept checks an item that is not the mark of a container, and sets its Data.
func (it *Item) accept() error {
	if it.Type.isArray() {
		return acceptArray(it)
	}
	n, ok := payloadSize(it.Type, len(it.raw), it.Flags)
	if !ok {
		return badf(it.Offset, ErrBadSize, "item %v of %d bytes with flags %#x", it.Type, len(it.raw), it.Flags)
	}
	it.Data = it.raw[:n:n]
	return nil
}

// payloadSize is size without the padding; ok is false if the padding is larger than size.
// Old writers did not record the padding. For the two types of theirs that have grown
// since, the size tells the version.
func payloadSize(t Type, size int, flags uint64) (int, bool) {
	if flags&(padMask|hasPadding) == 0 {
		switch {
		case t == TypeThreadSnapshot && size == 112:
			return 104, true
		case t == TypeSharedCacheLoadinfo && size == 32:
			return 24, true
		}
	}
	n := size - int(flags&padMask)
	return n, n >= 0
}

func (w *walk) enter(it *Item) error {
	if len(it.raw) < 4 {
		return badf(it.Offset, ErrBadSize, "container begin of %d bytes", len(it.raw))
	}
	if w.depth == MaxDepth {
		return badf(it.Offset, ErrTooDeep, "more than %d containers", MaxDepth)
	}
	it.Data = it.raw[:4:4]
	w.open[w.depth] = it.Flags
	w.depth++
	return nil
}

func (w *walk) leave(it *Item) error {
	if w.depth == 0 {
		return badf(it.Offset, ErrBadContainer, "end of container %d, none is open", it.Flags)
	}
	if id := w.open[w.depth-1]; id != it.Flags {
		return badf(it.Offset, ErrBadContainer, "end of container %d inside container %d", it.Flags, id)
	}
	w.depth--
	it.Depth = w.depth
	return nil
}

func (w *walk) learn(it *Item) error {
	s, err := parseDefinition(it.Data)
	if err != nil {
		return badf(it.Offset, ErrBadDefinition, "%v", err)
	}
	if w.definitions.inFile == nil {
		w.definitions.inFile = make(map[Type]Spec)
	}
	if old, again := w.definitions.inFile[s.Type]; again {
		w.definitions.fields -= 1 + len(old.Fields)
	}
	if w.definitions.fields += 1 + len(s.Fields); w.definitions.fields > maxDefinedFields {
		return badf(it.Offset, ErrTooLarge, "definitions of more than %d types and fields", maxDefinedFields)
	}
	w.definitions.inFile[s.Type] = s
	return nil
}
