// Package gopclntab reads the table of functions of Go programs, which survives
// stripping because the runtime itself needs it: the header, the function that
// holds a program counter, and the tables of values by program counter. Its
// layout is that of go1.18 to go1.26 (runtime/symtab.go: pcHeader, step;
// runtime/runtime2.go: _func).
//
//	pcHeader  magic u32, 0, 0, quantum u8, word size u8, then words: functions,
//	          files, text, and offsets in the table of names, compilation units,
//	          file names, values, functions
//	functions {entry u32 relative to the text, offset of its _func u32}..., end u32
//
// Open finds the table in a file. The caller then reads its words from the file, or from
// memory. The package trusts nothing in the table; no content makes it panic or loop.
package gopclntab

import (
	"encoding/binary"
	"fmt"
)

const (
	// HeaderSize is what ParseHeader needs, bytes.
	HeaderSize = 8 + 8*8

	magic118 = 0xfffffff0
	magic120 = 0xfffffff1

	maxFuncs = 8 << 20
	entry    = 8 // bytes of one function in the list
)

// Offsets of u32 fields in a _func.
const (
	FuncName = 4  // in Names
	FuncSP   = 16 // in Values: from the stack pointer to that of the function's entry
	FuncFile = 20 // in Values: number of a file in the unit
	FuncLine = 24 // in Values
	FuncUnit = 32 // index in Units
)

// Header is where the table has what. It is constant.
type Header struct {
	Text    uint64 // address of runtime.text; 0 since go1.26, and before the loader was at work
	Quantum uint64 // size of an instruction
	NFunc   uint64
	FlagAt  uint64 // of the u8 flags in a _func; those of go1.18 and 1.19 are shorter

	Names, Units, Files, Values, Funcs uint64 // offsets in the table
}

// damaged is the error of what is wrong with a table, at an offset in it.
func damaged(offset uint64, format string, args ...any) error {
	return fmt.Errorf("pclntab at %#x: %s", offset, fmt.Sprintf(format, args...))
}

// ParseHeader reads the header at the start of b, of a table of size bytes. The
// lists that it points at are in the table then, what they hold may be anything.
func ParseHeader(b []byte, size uint64) (Header, error) {
	fail := func(off uint64, format string, args ...any) (Header, error) {
		return Header{}, damaged(off, format, args...)
	}
	if len(b) < HeaderSize || size < HeaderSize {
		return fail(0, "%d bytes are no header", min(uint64(len(b)), size))
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8+8*i:]) }
	h := Header{
		Quantum: uint64(b[6]), NFunc: word(0), Text: word(2),
		Names: word(3), Units: word(4), Files: word(5), Values: word(6), Funcs: word(7),
	}
	switch magic := binary.LittleEndian.Uint32(b); magic {
	case magic118:
		h.FlagAt = 37
	case magic120:
		h.FlagAt = 41
	default:
		return fail(0, "magic %#x: only go1.18 and later are read", magic)
	}
	if b[7] != 8 || h.Quantum != 1 && h.Quantum != 4 {
		return fail(4, "words of %d bytes, instructions of %d", b[7], h.Quantum)
	}
	if max(h.Names, h.Units, h.Files, h.Values, h.Funcs) > size {
		return fail(32, "offsets outside its %d bytes", size)
	}
	if h.NFunc > maxFuncs || h.NFunc*entry+4 > size-h.Funcs {
		return fail(8, "%d functions in %d bytes", h.NFunc, size)
	}
	return h, nil
}

// Entry is the start of the i-th function, relative to the text; the end of the
// last one for i = NFunc. word reads a u32 of the table; it is asked for those
// that ParseHeader has seen to be there.
func (h *Header) Entry(word func(off uint64) uint32, i uint64) uint64 {
	return uint64(word(h.Funcs + i*entry))
}

// Find returns the function that holds pc, relative to the text: its start, and
// the offset of its _func, which may lie outside the table.
func (h *Header) Find(word func(off uint64) uint32, pc uint64) (start, at uint64, ok bool) {
	if pc < h.Entry(word, 0) || pc >= h.Entry(word, h.NFunc) {
		return 0, 0, false
	}
	lo, hi := uint64(0), h.NFunc // Entry(lo) <= pc < Entry(hi)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; h.Entry(word, mid) <= pc {
			lo = mid
		} else {
			hi = mid
		}
	}
	start = h.Entry(word, lo)
	return start, h.Funcs + uint64(word(h.Funcs+lo*entry+4)), start <= pc // else the file changed under us
}

// Value runs a table of values, pairs {change of the value, of the program
// counter}, to the value at pc, relative to the function's start. table begins
// with it and may go on.
func (h *Header) Value(table []byte, pc uint64) (int32, bool) {
	value, end := int32(-1), uint64(0)
	for first := true; ; first = false {
		change, n := binary.Uvarint(table)
		if n <= 0 || change == 0 && !first {
			return 0, false
		}
		table = table[n:]
		value += int32(uint32(change)>>1) ^ -int32(change&1)
		step, n := binary.Uvarint(table)
		if n <= 0 {
			return 0, false
		}
		table = table[n:]
		if end += step * h.Quantum; pc < end {
			return value, true
		}
	}
}
