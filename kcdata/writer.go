package kcdata

// ItemWriter writes items, into one chunk (*Writer) or a chain of chunks (*Chain). Every
// method writes one whole item or, if it returns an error, nothing.
//
// Bytes, String, Array, Uint64s, BeginContainer, EndContainer, Begin, End, Define and the
// descs do not allocate. Struct and StructArray allocate when they meet a type for the
// first time, and if v is not a pointer to memory that is on the heap already. Errors:
// ErrNoSpace, ErrBadName, ErrNotFixed, ErrReserved, ErrSizeMismatch, ErrNotDefinable.
type ItemWriter interface {
	// Begin writes the begin marker of a buffer.
	Begin(magic Type) error
	// Struct writes v, a struct with kc tags, an integer, or a pointer to one.
	// If t is a known struct, v must have the size of one of its versions.
	Struct(t Type, v any) error
	// Bytes writes b as the payload of t. If t is Bytewise, it writes an array.
	Bytes(t Type, b []byte) error
	// String writes s and a NUL, as Bytes does. A NUL in s is ErrBadName, because readers
	// would cut s there.
	String(t Type, s string) error
	// Array writes count elements of elemSize bytes each; b holds exactly these.
	Array(elem Type, elemSize, count int, b []byte) error
	// Uint64s writes an array of u64.
	Uint64s(elem Type, v []uint64) error
	// StructArray writes slice, a slice of structs with kc tags or of integers.
	StructArray(elem Type, slice any) error
	// Uint32Desc and Uint64Desc write a number that carries its name, of 1 to 31 bytes,
	// itself. (Readers know descs of text, bytes and signed numbers, too.)
	Uint32Desc(name string, v uint32) error
	Uint64Desc(name string, v uint64) error
	// BeginContainer opens a container of type t. Siblings of type t need different ids.
	BeginContainer(t Type, id uint64) error
	// EndContainer closes the innermost container, which must have this id. The writer
	// does not check that, because several writers may write the items of one task. The
	// reader checks it.
	EndContainer(id uint64) error
	// Define writes the TYPEDEFINITION of t from its spec. It must stand before the first
	// item of type t.
	Define(t Type) error
	// End writes the end marker.
	End() error
}

var (
	_ ItemWriter = (*Writer)(nil)
	_ ItemWriter = (*Chain)(nil)
)

// space is the memory that items are written to. reserve returns exactly n bytes, in one
// piece, which are part of the stream from then on. It does not clear them.
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

// NewWriter writes into buf, which the caller must keep and not change.
func NewWriter(buf []byte) *Writer {
	w := &Writer{buf: buf}
	w.space = w
	return w
}

// NewBuffer writes into memory of its own, which grows; it begins with room bytes. It is for
// use while the world runs.
func NewBuffer(room int) *Writer {
	w := NewWriter(make([]byte, room))
	w.grows = true
	return w
}

// Len is the number of bytes written so far.
func (w *Writer) Len() int { return w.n }

// Written is the bytes written so far, a part of the chunk.
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
