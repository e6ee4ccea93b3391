package kcdata

import (
	"strings"
)

// section collects the first error of many writes.
type StickyWriter struct {
	ItemWriter
	Err error
}

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

// HeapChain grows by allocating: only for while the world runs.
func HeapChain() *Chain {
	return NewChain(1<<16, func(least int) ([]byte, error) {
		return make([]byte, max(least, 64<<10)), nil
	}, func([]byte) {})
}

// newSection writes into memory that grows: sections are written while the
// world runs.
func NewSticky() (*StickyWriter, func() []byte) {
	chain := HeapChain()
	from := chain.Mark()
	return &StickyWriter{ItemWriter: chain}, func() []byte {
		var out []byte
		for b := range chain.Span(from, chain.Mark()) {
			out = append(out, b...)
		}
		return out
	}
}
