package kcdata

import "strings"

// StickyWriter collects the first error of many writes: whoever writes a section checks
// once, at its end.
type StickyWriter struct {
	ItemWriter
	Err error
}

// Note keeps the first error.
func (s *StickyWriter) Note(err error) {
	if s.Err == nil {
		s.Err = err
	}
}

// Text writes a string. An empty one is absent.
func (s *StickyWriter) Text(t Type, v string) {
	if v == "" {
		return
	}
	v = strings.ReplaceAll(v, "\x00", "")
	s.Note(s.String(t, v))
}

func (s *StickyWriter) PutBytes(t Type, v []byte)       { s.Note(s.Bytes(t, v)) }
func (s *StickyWriter) Record(t Type, v any)            { s.Note(s.Struct(t, v)) }
func (s *StickyWriter) PutUint64(name string, v uint64) { s.Note(s.Uint64Desc(name, v)) }
func (s *StickyWriter) PutUint32(name string, v uint32) { s.Note(s.Uint32Desc(name, v)) }
func (s *StickyWriter) Array(t Type, elements any)      { s.Note(s.StructArray(t, elements)) }

// Some writes an array that is absent where it is empty.
func (s *StickyWriter) Some(t Type, elements any, n int) {
	if n > 0 {
		s.Array(t, elements)
	}
}

// NewSticky writes into memory that grows; the function gives what is written. It is for
// sections, which are written while the world runs.
func NewSticky() (*StickyWriter, func() []byte) {
	b := NewBuffer(1 << 10)
	return &StickyWriter{ItemWriter: b}, b.Written
}
