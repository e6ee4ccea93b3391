package kcdata

import (
	"encoding/binary"
	"iter"
)

// MaxDepth is how deep containers may nest, nested buffers counted too.
const MaxDepth = 64

// MaxNested is how deep buffers may stand inside buffers.
const MaxNested = 8

// Reader walks one plain buffer. It is not safe for concurrent use, because a walk learns
// type definitions. Several readers may share the bytes.
type Reader struct {
	definitions // only modified by Items
	data        []byte
	magic       Type
	first       int // offset of the first item behind the begin marker
}

// definitions are the types that a buffer itself has defined so far.
type definitions struct {
	inFile map[Type]Spec // nil until a definition is met
	fields int           // number of the types in inFile and of all their fields
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

// Spec describes t as the file has defined it so far, or else as the built-in table does.
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

// Items walks the items between the begin marker and the end marker. It ignores bytes
// behind the end marker; of a file, Read says that there are some. An error ends the walk and is a *FormatError; the items before it
// were sound. The walk learns the definitions that it meets; a new walk begins without
// them.
func (r *Reader) Items() iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		w := r.walk()
		clear(r.inFile)
		r.fields = 0
		w.each(yield)
	}
}

// Check walks the whole of plain, but not the buffers nested in it. It returns the length
// of the buffer in bytes, from the begin marker to the end of the end marker. Errors: those
// of NewReader and Items.
func Check(plain []byte) (int, error) {
	r, err := NewReader(plain)
	if err != nil {
		return 0, err
	}
	w := r.walk()
	w.each(func(_ Item, broken error) bool { err = broken; return true })
	if err != nil {
		return 0, err
	}
	return w.at() + headerSize, nil // w stands at the end marker
}
