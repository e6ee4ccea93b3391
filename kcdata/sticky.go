package kcdata

import "strings"

// StickyWriter keeps the first error of many writes, so that the caller checks only once, at
// the end of a section.
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

// Text writes v without its NULs. It writes nothing if v is empty.
func (s *StickyWriter) Text(t Type, v string) {
	if v == "" {
		return
	}
	v = strings.ReplaceAll(v, "\x00", "")
	s.Note(s.String(t, v))
}

// The following methods write like those of ItemWriter and note the error.

func (s *StickyWriter) PutBytes(t Type, v []byte)       { s.Note(s.Bytes(t, v)) }
func (s *StickyWriter) Record(t Type, v any)            { s.Note(s.Struct(t, v)) }
func (s *StickyWriter) PutUint64(name string, v uint64) { s.Note(s.Uint64Desc(name, v)) }
func (s *StickyWriter) PutUint32(name string, v uint32) { s.Note(s.Uint32Desc(name, v)) }
func (s *StickyWriter) Array(t Type, elements any)      { s.Note(s.StructArray(t, elements)) }

// ArrayIfAny writes an array of n elements. It writes nothing if n is 0.
func (s *StickyWriter) ArrayIfAny(t Type, elements any, n int) {
	if n > 0 {
		s.Array(t, elements)
	}
}

// NewSticky writes into memory that grows. The function returns the bytes written so far. It
// is for sections, which are written while the world runs.
func NewSticky() (*StickyWriter, func() []byte) {
	b := NewBuffer(1 << 10)
	return &StickyWriter{ItemWriter: b}, b.Written
}
