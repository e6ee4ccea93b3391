// Package testelf makes small ELF files by hand, for tests of what reads them: files
// that no linker would write. Of other files it asks readelf.
package testelf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// Base is the address of the file's first byte: one segment, of code, has all of it.
const Base = 0x400000

// Section is one section of a file.
type Section struct {
	Name  string
	Type  elf.SectionType
	Flags elf.SectionFlag
	Link  uint32
	Data  []byte
	Like  string // lies where an earlier section of that name does; Data is not used
}

// Sizes of ELF64 structures.
const (
	headerSize  = 64
	segmentSize = 56
	sectionSize = 64
)

// File makes a file for amd64. The first of sections is number 1; the last is
// behind them, the names.
func File(sections ...Section) []byte {
	names := Section{Name: ".shstrtab", Type: elf.SHT_STRTAB}
	nameAt := map[string]uint32{}
	for _, s := range append(sections, names) {
		if _, ok := nameAt[s.Name]; !ok {
			nameAt[s.Name] = uint32(len(names.Data)) + 1
			names.Data = append(append(names.Data, 0), s.Name...)
		}
	}
	names.Data = append(names.Data, 0)
	b := make([]byte, headerSize+segmentSize)
	headers := []elf.Section64{{}}
	at := map[string]elf.Section64{}
	for _, s := range append(sections, names) {
		h := elf.Section64{
			Name: nameAt[s.Name], Type: uint32(s.Type), Flags: uint64(s.Flags), Link: s.Link,
			Addr: Base + uint64(len(b)), Off: uint64(len(b)), Size: uint64(len(s.Data)),
		}
		if s.Like == "" {
			b = append(b, s.Data...)
			at[s.Name] = h
		} else {
			h.Addr, h.Off, h.Size = at[s.Like].Addr, at[s.Like].Off, at[s.Like].Size
		}
		headers = append(headers, h)
	}
	size := uint64(len(b))
	b = append(b, packed(headers)...)
	copy(b, packed(elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: headerSize,
		Phoff: headerSize, Phentsize: segmentSize, Phnum: 1,
		Shoff: size, Shentsize: sectionSize, Shnum: uint16(len(headers)), Shstrndx: uint16(len(headers) - 1),
	}))
	copy(b[headerSize:], packed(elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: Base, Filesz: size, Memsz: size,
	}))
	return b
}

func packed(v any) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
		panic(err) // constant types
	}
	return b.Bytes()
}

// Packed is the content of a section that is compressed and says to unpack to size
// bytes.
func Packed(how elf.CompressionType, size uint64, data []byte) []byte {
	return append(packed(elf.Chdr64{Type: uint32(how), Size: size, Addralign: 1}), data...)
}
