package kcdata

import (
	"encoding/binary"
	"iter"
)

// MaxDepth is how deep containers may nest, nested buffers counted too.
const MaxDepth = 64

// MaxNested is how deep buffers may stand inside buffers.
const MaxNested = 8

// Reader walks one plain buffer. It is not safe for concurrent use: walking
// learns type definitions. Several readers may share the bytes.
type Reader struct {
	data   []byte
	magic  Type
	first  int           // offset of the first item behind the begin marker
	inFile map[Type]Spec // only modified by Items; nil until a definition is met
	fields int           // of the types in inFile, each counted as one more
}

// NewReader checks the begin marker of plain, which must not be compressed (see
// Unwrap). Errors: ErrTruncated, ErrBadMagic, ErrBadSize, in a *FormatError.
func NewReader(plain []byte) (*Reader, error) {
	if len(plain) < headerSize {
		return nil, badf(0, ErrTruncated, "%d bytes, a begin marker has %d", len(plain), headerSize)
	}
	h := header(plain)
	if !h.typ.IsMagic() {
		return nil, badf(0, ErrBadMagic, "magic %#x", uint32(h.typ))
	}
	if h.typ == MagicCompressed {
		return nil, badf(0, ErrBadMagic, "compressed, to be unwrapped first")
	}
	if h.size > uint64(len(plain)-headerSize) {
		return nil, badf(0, ErrBadSize, "begin marker of %d bytes", h.size)
	}
	return &Reader{data: plain, magic: h.typ, first: headerSize + int(h.size)}, nil
}

// Magic says what kind of buffer this is.
func (r *Reader) Magic() Type { return r.magic }

// Spec describes t: as the file defines it so far, else as built in.
func (r *Reader) Spec(t Type) (Spec, bool) {
	if s, ok := r.inFile[t]; ok {
		return s, true
	}
	return Lookup(t)
}

type itemHeader struct {
	typ   Type
	size  uint64
	flags uint64
}

// header reads the header at the start of b, which has at least 16 bytes.
func header(b []byte) itemHeader {
	return itemHeader{
		typ:   Type(binary.LittleEndian.Uint32(b)),
		size:  uint64(binary.LittleEndian.Uint32(b[4:])),
		flags: binary.LittleEndian.Uint64(b[8:]),
	}
}

// Items walks from the item behind the begin marker to the end marker, neither
// included; bytes behind the end marker are ignored. An error ends the walk and
// is a *FormatError; the items before it were sound. Definitions are learnt on
// the way, and forgotten when a new walk begins.
func (r *Reader) Items() iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		w := walk{r: r, off: r.first}
		clear(r.inFile)
		r.fields = 0
		for {
			it, err := w.next()
			if err != nil {
				yield(Item{}, err)
				return
			}
			if it.Type == BufferEnd || !yield(it, nil) {
				return
			}
		}
	}
}

// walk is the state of one pass.
type walk struct {
	r     *Reader
	off   int
	open  [MaxDepth]uint64 // ids of the open containers
	depth int
}

func (w *walk) next() (Item, error) {
	rest := w.r.data[w.off:]
	if len(rest) < headerSize {
		return Item{}, badf(w.off, ErrTruncated, "%d bytes left, no end marker", len(rest))
	}
	h := header(rest)
	if h.typ == BufferEnd {
		return w.end()
	}
	if h.size > uint64(len(rest)-headerSize) {
		return Item{}, badf(w.off, ErrTruncated, "item %v of %d bytes, %d left", h.typ, h.size, len(rest)-headerSize)
	}
	n := headerSize + int(h.size)
	it := Item{Type: h.typ, Flags: h.flags, Offset: w.off, Depth: w.depth, wire: h.typ, raw: rest[headerSize:n:n]}
	if err := w.accept(&it); err != nil {
		return Item{}, err
	}
	w.off += n
	return it, nil
}

func (w *walk) end() (Item, error) {
	if w.depth > 0 {
		return Item{}, badf(w.off, ErrBadContainer, "end of buffer inside container %d", w.open[w.depth-1])
	}
	return Item{Type: BufferEnd, Offset: w.off}, nil
}

// accept checks it.raw by the item's class and sets it.Data.
func (w *walk) accept(it *Item) error {
	switch {
	case it.Type.isArray():
		return acceptArray(it)
	case it.Type == TypeContainerBegin:
		return w.enter(it)
	case it.Type == TypeContainerEnd:
		return w.leave(it)
	}
	n, ok := payloadSize(it.Type, len(it.raw), it.Flags)
	if !ok {
		return badf(it.Offset, ErrBadSize, "item %v of %d bytes with flags %#x", it.Type, len(it.raw), it.Flags)
	}
	it.Data = it.raw[:n:n]
	if it.Type == TypeDefinition {
		return w.learn(it)
	}
	return nil
}

// payloadSize takes the padding off. Old writers recorded none: of the two
// types of theirs that have grown since, the size tells the version.
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
	if w.r.inFile == nil {
		w.r.inFile = make(map[Type]Spec)
	}
	if old, again := w.r.inFile[s.Type]; again {
		w.r.fields -= 1 + len(old.Fields)
	}
	if w.r.fields += 1 + len(s.Fields); w.r.fields > maxDefinedFields {
		return badf(it.Offset, ErrTooLarge, "definitions of more than %d types and fields", maxDefinedFields)
	}
	w.r.inFile[s.Type] = s
	return nil
}
