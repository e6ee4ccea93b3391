package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
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
	h := decoded[elf.Header64](b)
	if h.Phnum > maxSegments || h.Phnum > 0 && h.Phentsize != segmentSize || !inside(h.Phoff, uint64(h.Phnum)*segmentSize, size) {
		return badHeader(32, "%d program headers of %d bytes at %#x, the file has %d bytes", h.Phnum, h.Phentsize, h.Phoff, size)
	}
	if h.Shoff == 0 {
		return nil
	}
	if h.Shentsize != sectionSize || !inside(h.Shoff, uint64(max(h.Shnum, 1))*sectionSize, size) {
		return badHeader(40, "%d section headers of %d bytes at %#x, the file has %d bytes", h.Shnum, h.Shentsize, h.Shoff, size)
	}
	return checkSections(r, size, h.Shoff, uint64(h.Shnum), uint64(h.Shstrndx))
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
		first := decoded[elf.Section64](b)
		if count == 0 {
			count = first.Size
		}
		if names >= uint64(elf.SHN_LORESERVE) {
			names = uint64(first.Link)
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
	s := decoded[elf.Section64](headers[at*sectionSize:])
	if elf.SectionFlag(s.Flags)&elf.SHF_COMPRESSED != 0 || s.Size > maxNames || !inside(s.Off, s.Size, size) {
		return badHeader(62, "%d bytes of section names at %#x with flags %#x, the file has %d", s.Size, s.Off, s.Flags, size)
	}
	names := make([]byte, s.Size)
	if _, err := r.ReadAt(names, int64(s.Off)); err != nil && s.Size > 0 {
		return fmt.Errorf("section names: %w", err)
	}
	for i := 0; i < len(headers); i += sectionSize {
		name := names[min(uint64(binary.LittleEndian.Uint32(headers[i:])), s.Size):]
		if len(name) > maxName && bytes.IndexByte(name[:maxName], 0) < 0 {
			return badHeader(62, "section %d has a name of more than %d bytes", i/sectionSize, maxName)
		}
	}
	return nil
}

// decoded is the structure that b begins with, which has its size.
func decoded[T any](b []byte) (v T) {
	if _, err := binary.Decode(b, binary.LittleEndian, &v); err != nil {
		panic(err)
	}
	return v
}

func inside(offset, length uint64, size int64) bool {
	return size >= 0 && offset <= uint64(size) && length <= uint64(size)-offset
}
