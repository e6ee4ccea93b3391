package unwind

import (
	"debug/elf"
	"fmt"
	"io"
)

// Sizes of ELF64 structures.
const (
	headerSize  = 64
	segmentSize = 56
	sectionSize = 64
)

// checkHeader refuses a file whose tables are not in it. debug/elf would find
// out too, but first takes memory for what they claim.
func checkHeader(r io.ReaderAt, size int64) error {
	b := make([]byte, headerSize)
	if _, err := r.ReadAt(b, 0); err != nil {
		return fmt.Errorf("ELF header: %w", err)
	}
	c := cursor{data: b, pos: 32}
	segments, sections := c.u64(), c.u64()
	c.take(8) // flags, size of this header, size of a program header
	segmentCount := uint64(c.u16())
	c.take(2)
	sectionCount, names := uint64(c.u16()), uint64(c.u16())
	if !inside(segments, segmentCount*segmentSize, size) {
		return &FormatError{"ELF header", 32, fmt.Sprintf("%d program headers at %#x, the file has %d bytes", segmentCount, segments, size)}
	}
	if sections == 0 {
		return nil
	}
	if !inside(sections, max(sectionCount, 1)*sectionSize, size) {
		return &FormatError{"ELF header", 40, fmt.Sprintf("%d section headers at %#x, the file has %d bytes", sectionCount, sections, size)}
	}
	return checkNames(r, size, sections, sectionCount, names)
}

// checkNames checks the table of the sections' names.
func checkNames(r io.ReaderAt, size int64, sections, count, names uint64) error {
	b := make([]byte, sectionSize)
	if count == 0 || names >= uint64(elf.SHN_LORESERVE) { // large counts are in the first section header
		if _, err := r.ReadAt(b, int64(sections)); err != nil {
			return fmt.Errorf("section header 0: %w", err)
		}
		c := cursor{data: b, pos: 32}
		if total := c.u64(); count == 0 {
			count = total
		}
		if link := uint64(c.u32()); names >= uint64(elf.SHN_LORESERVE) {
			names = link
		}
		if count > uint64(size)/sectionSize || !inside(sections, count*sectionSize, size) {
			return &FormatError{"section header 0", 32, fmt.Sprintf("%d section headers, the file has %d bytes", count, size)}
		}
	}
	if names >= count {
		return nil // debug/elf says so
	}
	at := sections + names*sectionSize
	if _, err := r.ReadAt(b, int64(at)); err != nil {
		return fmt.Errorf("section header %d: %w", names, err)
	}
	c := cursor{data: b, pos: 24}
	if offset, length := c.u64(), c.u64(); !inside(offset, length, size) {
		return &FormatError{fmt.Sprintf("section header %d", names), 24, fmt.Sprintf("%d bytes at %#x, the file has %d", length, offset, size)}
	}
	return nil
}

func inside(offset, length uint64, size int64) bool {
	return size >= 0 && offset <= uint64(size) && length <= uint64(size)-offset
}
