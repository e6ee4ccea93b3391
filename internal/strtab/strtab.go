// Package strtab makes the string tables of a file: strings with a NUL after
// each, that records refer to by offset. Offset 0 is "".
package strtab

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxString is the longest string that is written, in bytes: a reader takes no
	// more of one.
	maxString = 4095
	// maxTable bounds a table that texts are added to: those of a process come to
	// a few MiB, and offsets have 32 bits.
	maxTable = 64 << 20
)

// Table is one table. It only grows: records may point into it already.
type Table struct {
	bytes []byte
	at    map[string]uint32 // where each string begins, the first time
}

// New begins with the NUL that is no string.
func New() *Table { return Over(nil) }

// Over begins with a copy of old, and the strings of that.
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

// Bytes is the table. The next Add may change it.
func (s *Table) Bytes() []byte { return s.bytes }

// Add returns where text, as Clip leaves it, begins; 0 for "", and for what the
// table has no room for.
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

// Clip makes text what a reader would read back: to its first NUL, and no longer
// than it reads, whole characters.
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
