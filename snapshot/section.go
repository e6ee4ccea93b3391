package snapshot

import (
	"strings"

	"stackshot/kcdata"
)

// section collects the first error of many writes.
type section struct {
	kcdata.ItemWriter
	err error
}

func (s *section) note(err error) {
	if s.err == nil {
		s.err = err
	}
}

// text writes a string. An empty one is absent.
func (s *section) text(t kcdata.Type, v string) {
	if v == "" {
		return
	}
	v = strings.ReplaceAll(v, "\x00", "")
	s.note(s.String(t, v))
}

func (s *section) bytes(t kcdata.Type, v []byte)     { s.note(s.Bytes(t, v)) }
func (s *section) record(t kcdata.Type, v any)       { s.note(s.Struct(t, v)) }
func (s *section) uint64(name string, v uint64)      { s.note(s.Uint64Desc(name, v)) }
func (s *section) uint32(name string, v uint32)      { s.note(s.Uint32Desc(name, v)) }
func (s *section) array(t kcdata.Type, elements any) { s.note(s.StructArray(t, elements)) }

// some writes an array that is absent where it is empty.
func (s *section) some(t kcdata.Type, elements any, n int) {
	if n > 0 {
		s.array(t, elements)
	}
}

// heapChain grows by allocating: only for while the world runs.
func heapChain() *kcdata.Chain {
	return kcdata.NewChain(1<<16, func(least int) ([]byte, error) {
		return make([]byte, max(least, 64<<10)), nil
	}, func([]byte) {})
}

// newSection writes into memory that grows: sections are written while the
// world runs.
func newSection() (*section, func() []byte) {
	chain := heapChain()
	from := chain.Mark()
	return &section{ItemWriter: chain}, func() []byte {
		var out []byte
		for b := range chain.Span(from, chain.Mark()) {
			out = append(out, b...)
		}
		return out
	}
}
