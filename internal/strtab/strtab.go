// Package strtab makes the string tables of a file. A table is strings, each with a NUL behind
// it. Records refer to a string by its offset in bytes; offset 0 is "".
package strtab

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxString is the size in bytes of the longest string in a table. A reader does not
	// read more.
	maxString = 4095
	// maxTable is the size in bytes up to which Add adds strings. Those of a process have
	// a few MiB, and offsets have 32 bits.
	maxTable = 64 << 20
)

// Table is one table. It only grows, because records may have offsets into it already.
type Table struct {
	bytes []byte
	at    map[string]uint32 // offset of the first copy of each string
}

// New makes a table without strings. It holds the NUL of offset 0.
func New() *Table { return Over(nil) }

// Over makes a table that begins with a copy of old and reuses the strings in it.
func Over(old []byte) *Table {
	s := &Table{bytes: slices.Clone(old), at: map[string]uint32{}}
	if len(s.bytes) == 0 {
		s.bytes = []byte{0}
	}
	if s.bytes[len(s.bytes)-1] != 0 {
		s.bytes = append(s.bytes, 0)
	}
	for off := 0; off < len(s.bytes); {
		n := bytes.IndexByte(s.bytes[off:], 0)
		text := string(s.bytes[off : off+n])
		if _, ok := s.at[text]; !ok && off > 0 {
			s.at[text] = uint32(off)
		}
		off += n + 1
	}
	return s
}

// Bytes is the table as it stands in a file. It is valid until the next Add.
func (s *Table) Bytes() []byte { return s.bytes }

// Add returns the offset of text, cut by Clip, and adds it if it is new. It returns 0 for ""
// and for text that the table has no room for.
func (s *Table) Add(text string) uint32 {
	text = Clip(text)
	if text == "" {
		return 0
	}
	if off, ok := s.at[text]; ok {
		return off
	}
	if len(s.bytes)+len(text) >= maxTable {
		return 0
	}
	off := uint32(len(s.bytes))
	s.bytes = append(append(s.bytes, text...), 0)
	s.at[text] = off
	return off
}

// Clip cuts text to what a reader reads back: at the first NUL, and at maxString bytes, at the
// end of a whole character.
func Clip(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	if len(text) <= maxString {
		return text
	}
	n := maxString
	for n > maxString-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
