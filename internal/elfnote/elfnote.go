// Package elfnote reads GNU build-ids: of ELF files, of the kernel and its
// modules. It trusts nothing that it reads.
package elfnote

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Errors of BuildID.
var (
	ErrNotELF    = errors.New("not an ELF file")
	ErrNoBuildID = errors.New("no GNU build-id")
)

// Bounds on what a damaged file may make us read.
const (
	maxHeaders = 4096    // of segments, and of sections
	maxNotes   = 1 << 20 // bytes of one segment or section of notes
	maxNoteSet = 32      // of those
	maxBuildID = 64
)

const (
	ntGNUBuildID   = 3 // NT_GNU_BUILD_ID of <elf.h>
	noteHeaderSize = 12
)

// BuildID reads the GNU build-id out of an ELF file's notes: of its segments,
// which, unlike sections, strip(1) leaves, else of its sections, for Go's linker
// puts it into no segment of notes. Either class, either byte order. Errors:
// ErrNotELF, ErrNoBuildID, the reader's.
func BuildID(r io.ReaderAt) ([]byte, error) {
	segments, sections, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	for _, t := range []*table{segments, sections} {
		if id, err := t.buildID(r); id != nil || err != nil {
			return id, err
		}
	}
	return nil, ErrNoBuildID
}

// table is where the headers of segments or sections are, and what of them is
// wanted: offsets in a header of its class.
type table struct {
	order                binary.ByteOrder
	is64                 bool
	at, each             int64 // offset of the first, distance of the next
	count                int
	least                int64 // bytes of a header
	kind                 uint32
	typ, off, size, algn int64
}

var (
	segments64 = table{is64: true, least: 56, kind: uint32(elf.PT_NOTE), typ: 0, off: 8, size: 32, algn: 48}
	segments32 = table{least: 32, kind: uint32(elf.PT_NOTE), typ: 0, off: 4, size: 16, algn: 28}
	sections64 = table{is64: true, least: 64, kind: uint32(elf.SHT_NOTE), typ: 4, off: 24, size: 32, algn: 48}
	sections32 = table{least: 40, kind: uint32(elf.SHT_NOTE), typ: 4, off: 16, size: 20, algn: 32}
)

// readHeader finds both tables.
func readHeader(r io.ReaderAt) (segments, sections *table, err error) {
	var b [64]byte
	n, err := r.ReadAt(b[:], 0)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	if n < 52 || !bytes.HasPrefix(b[:], []byte("\x7fELF")) {
		return nil, nil, ErrNotELF
	}
	var o binary.ByteOrder = binary.LittleEndian
	if b[5] == 2 {
		o = binary.BigEndian
	}
	switch {
	case b[5] != 1 && b[5] != 2:
		return nil, nil, fmt.Errorf("%w: byte order %d", ErrNotELF, b[5])
	case b[4] == 1:
		return segments32.place(o, uint64(o.Uint32(b[28:])), b[42:46]), sections32.place(o, uint64(o.Uint32(b[32:])), b[46:50]), nil
	case b[4] == 2 && n == 64:
		return segments64.place(o, o.Uint64(b[32:]), b[54:58]), sections64.place(o, o.Uint64(b[40:]), b[58:62]), nil
	}
	return nil, nil, fmt.Errorf("%w: class %d, %d bytes", ErrNotELF, b[4], n)
}

// place gives a table its place: {u16 size of a header, u16 number of them}.
func (t table) place(order binary.ByteOrder, at uint64, sizes []byte) *table {
	t.order, t.at = order, int64(at)
	t.each, t.count = int64(order.Uint16(sizes)), int(order.Uint16(sizes[2:]))
	return &t
}

// buildID looks through the notes of one table; nil for none.
func (t *table) buildID(r io.ReaderAt) ([]byte, error) {
	if t.count > 0 && (t.each < t.least || t.at < 0) {
		return nil, fmt.Errorf("%w: headers of %d bytes at %d", ErrNotELF, t.each, t.at)
	}
	var b [64]byte
	for i, seen := 0, 0; i < min(t.count, maxHeaders) && seen < maxNoteSet; i++ {
		off := t.at + int64(i)*t.each
		if n, err := r.ReadAt(b[:t.least], off); n < int(t.least) {
			if err == io.EOF {
				err = fmt.Errorf("%w: headers at %d are cut off", ErrNotELF, off)
			}
			return nil, err
		}
		if t.order.Uint32(b[t.typ:]) != t.kind {
			continue
		}
		seen++
		if id, err := t.notes(r, b[:]); id != nil || err != nil {
			return id, err
		}
	}
	return nil, nil
}

// notes looks through the notes that a header is of.
func (t *table) notes(r io.ReaderAt, header []byte) ([]byte, error) {
	off, size, align := t.word(header[t.off:]), t.word(header[t.size:]), t.word(header[t.algn:])
	if size > maxNotes || off > 1<<62 {
		return nil, nil
	}
	b := make([]byte, size)
	n, err := r.ReadAt(b, int64(off))
	if err != nil && err != io.EOF {
		return nil, err
	}
	return Find(b[:n], t.order, align), nil
}

// word is an address-sized field.
func (t *table) word(b []byte) uint64 {
	if t.is64 {
		return t.order.Uint64(b)
	}
	return uint64(t.order.Uint32(b))
}

// Find looks for the build-id among ELF notes: {u32 name size, descriptor size,
// type}, name, descriptor, each padded to 4 bytes, in a segment aligned to 8 to
// 8. nil for none.
func Find(b []byte, order binary.ByteOrder, align uint64) []byte {
	if align != 8 {
		align = 4
	}
	pad := func(n uint64) uint64 { return (n + align - 1) &^ (align - 1) }
	for len(b) >= noteHeaderSize {
		nameLen, descLen := uint64(order.Uint32(b)), uint64(order.Uint32(b[4:]))
		desc := pad(noteHeaderSize + nameLen)
		end := desc + descLen
		if end > uint64(len(b)) {
			return nil
		}
		if order.Uint32(b[8:]) == ntGNUBuildID && string(b[noteHeaderSize:noteHeaderSize+nameLen]) == "GNU\x00" && 0 < descLen && descLen <= maxBuildID {
			return bytes.Clone(b[desc:end])
		}
		b = b[min(pad(end), uint64(len(b))):]
	}
	return nil
}
