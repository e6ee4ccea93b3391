package kcdata

// ItemWriter writes items: into one chunk (*Writer) or a chain of chunks
// (*Chain). Every method writes one whole item or, with an error, nothing.
//
// Bytes, String, Array, Uint64s, BeginContainer, EndContainer, Begin, End,
// Define and the descs allocate nothing; neither do Struct and StructArray once
// they have met the type, if v is a pointer to memory that is on the heap
// already. Errors: ErrNoSpace, ErrBadName, ErrNotFixed, ErrReserved,
// ErrSizeMismatch, ErrNotDefinable.
type ItemWriter interface {
	// Begin writes the begin marker of a buffer.
	Begin(magic Type) error
	// Struct writes v, a struct with kc tags, an integer, or a pointer to one.
	// Where t is a known struct, v must have the size of one of its versions.
	Struct(t Type, v any) error
	// Bytes writes b as the payload of t; where t is Bytewise, as an array.
	Bytes(t Type, b []byte) error
	// String writes s and a NUL, as Bytes does. A NUL in s is ErrBadName: it would be
	// cut there.
	String(t Type, s string) error
	// Array writes count elements of elemSize bytes each; b holds exactly them.
	Array(elem Type, elemSize, count int, b []byte) error
	// Uint64s writes an array of u64.
	Uint64s(elem Type, v []uint64) error
	// StructArray writes slice, a slice of structs with kc tags or of integers.
	StructArray(elem Type, slice any) error
	// Uint32Desc and Uint64Desc write a number that carries its name, of 1 to 31 bytes,
	// itself. (Readers know descs of text, bytes and signed numbers, too.)
	Uint32Desc(name string, v uint32) error
	Uint64Desc(name string, v uint64) error
	// BeginContainer opens a container of type t; id is unique among siblings of t.
	BeginContainer(t Type, id uint64) error
	// EndContainer closes the innermost container, which must have this id. The
	// writer does not track that, because a task's items may be split over
	// several writers; the reader does.
	EndContainer(id uint64) error
	// Define writes the TYPEDEFINITION of t from its spec, to stand before t's
	// first use. It is always the same for one type: some decoders apply the last
	// one of a file to all items before it.
	Define(t Type) error
	// End writes the end marker.
	End() error
}

var (
	_ ItemWriter = (*Writer)(nil)
	_ ItemWriter = (*Chain)(nil)
)

// space is where items go. reserve gives exactly n bytes, in one piece, which
// are then part of the stream; their content is not cleared.
type space interface {
	reserve(n int) ([]byte, error)
}

// Writer writes items into one chunk of memory. It is not safe for concurrent use.
type Writer struct {
	items
	buf   []byte
	n     int
	grows bool
}

// NewWriter writes into buf, which the caller keeps alive and untouched.
func NewWriter(buf []byte) *Writer {
	w := &Writer{buf: buf}
	w.space = w
	return w
}

// NewBuffer writes into memory that it takes as it needs, room bytes to begin with:
// for while the world runs.
func NewBuffer(room int) *Writer {
	w := NewWriter(make([]byte, room))
	w.grows = true
	return w
}

// Len is the number of bytes written.
func (w *Writer) Len() int { return w.n }

// Written is what was written, a part of the chunk.
func (w *Writer) Written() []byte { return w.buf[:w.n:w.n] }

func (w *Writer) reserve(n int) ([]byte, error) {
	if n > len(w.buf)-w.n {
		if !w.grows {
			return nil, ErrNoSpace
		}
		w.buf = append(w.buf[:w.n], make([]byte, n+len(w.buf))...)
	}
	b := w.buf[w.n : w.n+n : w.n+n]
	w.n += n
	return b, nil
}
