package unwind

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"

	"stackshot/internal/cursor"
)

// Sizes of ELF64 structures.
const (
	headerSize  = 64
	segmentSize = 56
	sectionSize = 64
)

// Caps of what debug/elf makes of a file. Real ones have a dozen segments, and the
// names of their sections are short words.
const (
	maxSegments = 128
	maxSections = 1 << 16
	maxNames    = 8 << 20 // bytes of the sections' names
	maxName     = 256
)

// checkHeader refuses a file whose tables are not in it, or are not like those of
// real files. debug/elf would find out some of it too, but first takes memory for
// what they claim, and copies a name for each section that points at it.
func checkHeader(r io.ReaderAt, size int64) error {
	b := make([]byte, headerSize)
	if _, err := r.ReadAt(b, 0); err != nil {
		return fmt.Errorf("ELF header: %w", err)
	}
	if elf.Class(b[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(b[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return badHeader(4, "not a 64-bit little-endian file")
	}
	c := cursor.Cursor{Data: b, Pos: 32}
	segments, sections := c.U64(), c.U64()
	c.Take(6) // flags, size of this header
	segmentEach, segmentCount := uint64(c.U16()), uint64(c.U16())
	sectionEach, sectionCount, names := uint64(c.U16()), uint64(c.U16()), uint64(c.U16())
	if segmentCount > maxSegments || segmentCount > 0 && segmentEach != segmentSize || !inside(segments, segmentCount*segmentSize, size) {
		return badHeader(32, "%d program headers of %d bytes at %#x, the file has %d bytes", segmentCount, segmentEach, segments, size)
	}
	if sections == 0 {
		return nil
	}
	if sectionEach != sectionSize || !inside(sections, max(sectionCount, 1)*sectionSize, size) {
		return badHeader(40, "%d section headers of %d bytes at %#x, the file has %d bytes", sectionCount, sectionEach, sections, size)
	}
	return checkSections(r, size, sections, sectionCount, names)
}

func badHeader(offset uint64, format string, args ...any) error {
	return &FormatError{"ELF header", offset, fmt.Sprintf(format, args...)}
}

// checkSections checks the number of the sections, and their names.
func checkSections(r io.ReaderAt, size int64, sections, count, names uint64) error {
	if count == 0 || names >= uint64(elf.SHN_LORESERVE) { // large numbers are in the first section header
		b := make([]byte, sectionSize)
		if _, err := r.ReadAt(b, int64(sections)); err != nil {
			return fmt.Errorf("section header 0: %w", err)
		}
		c := cursor.Cursor{Data: b, Pos: 32}
		if total := c.U64(); count == 0 {
			count = total
		}
		if link := uint64(c.U32()); names >= uint64(elf.SHN_LORESERVE) {
			names = link
		}
	}
	if count > maxSections || !inside(sections, count*sectionSize, size) {
		return badHeader(40, "%d section headers at %#x, the file has %d bytes", count, sections, size)
	}
	headers := make([]byte, count*sectionSize)
	if _, err := r.ReadAt(headers, int64(sections)); err != nil {
		return fmt.Errorf("section headers: %w", err)
	}
	if names >= count {
		return nil // debug/elf says so
	}
	return checkNames(r, size, headers, names)
}

// checkNames checks the names of the sections, which the section at has.
func checkNames(r io.ReaderAt, size int64, headers []byte, at uint64) error {
	c := cursor.Cursor{Data: headers, Pos: int(at*sectionSize) + 8}
	flags := c.U64()
	c.Take(8) // address
	offset, length := c.U64(), c.U64()
	if elf.SectionFlag(flags)&elf.SHF_COMPRESSED != 0 || length > maxNames || !inside(offset, length, size) {
		return badHeader(62, "%d bytes of section names at %#x with flags %#x, the file has %d", length, offset, flags, size)
	}
	names := make([]byte, length)
	if _, err := r.ReadAt(names, int64(offset)); err != nil && length > 0 {
		return fmt.Errorf("section names: %w", err)
	}
	for i := 0; i < len(headers); i += sectionSize {
		c := cursor.Cursor{Data: headers, Pos: i}
		name := names[min(uint64(c.U32()), length):]
		if len(name) > maxName && bytes.IndexByte(name[:maxName], 0) < 0 {
			return badHeader(62, "section %d has a name of more than %d bytes", i/sectionSize, maxName)
		}
	}
	return nil
}

func inside(offset, length uint64, size int64) bool {
	return size >= 0 && offset <= uint64(size) && length <= uint64(size)-offset
}
