package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

const (
	// maxDebug is how many bytes of debug sections of one file are kept, packed
	// and unpacked.
	maxDebug = 768 << 20
	// maxRatio is how far real sections unpack, and more: xz and zstd could make
	// a gigabyte of a page.
	maxRatio = 32
	// freeUnpack may be unpacked whatever it was packed to.
	freeUnpack = 1 << 20
)

// unpackLimit is what size packed bytes may unpack to.
func unpackLimit(size, most uint64) uint64 { return min(most, freeUnpack+size*maxRatio) }

// packing of a debug section.
const (
	packNone = iota
	packZlib
	packZstd
)

// debugSection is one section as it lies in the file.
type debugSection struct {
	name string // with its dot, without the z of old compressed ones
	pack int
	size uint64 // unpacked, as the file claims
	data []byte
}

// lineSections are those that lines and inlined functions come from.
var lineSections = map[string]bool{
	".debug_abbrev": true, ".debug_info": true, ".debug_line": true, ".debug_ranges": true, ".debug_str": true,
	".debug_addr": true, ".debug_line_str": true, ".debug_str_offsets": true, ".debug_rnglists": true,
}

// hasDebug reports whether the file has DWARF of its own.
func (m *layout) hasDebug() bool {
	_, plain := m.section(".debug_info")
	_, old := m.section(".zdebug_info")
	return plain || old
}

// debugSections reads the sections of DWARF, still packed: that is all of it
// that needs the file.
func (f *File) debugSections() ([]debugSection, error) {
	var out []debugSection
	have := map[string]bool{}
	left := uint64(maxDebug)
	for i := range f.layout.sections {
		s := &f.layout.sections[i]
		name := strings.Replace(s.name, ".zdebug_", ".debug_", 1)
		if s.typ == elf.SHT_NOBITS || !lineSections[name] || have[name] {
			continue // of several of one name readers take one
		}
		have[name] = true
		b, err := f.in.bytes(s.span(), left, s.name)
		if err != nil {
			return nil, err
		}
		d, err := headerOf(s, name, b)
		if err != nil {
			return nil, err
		}
		if d.pack != packNone {
			left -= uint64(len(b))
		}
		if d.size > left {
			return nil, fmt.Errorf("%s: %d bytes unpacked, at most %d left: %w", s.name, d.size, left, ErrTooBig)
		}
		left -= d.size
		out = append(out, d)
	}
	return out, nil
}

func headerOf(s *section, name string, b []byte) (debugSection, error) {
	d := debugSection{name: name, size: uint64(len(b)), data: b}
	le := binary.LittleEndian
	switch {
	case s.flags&elf.SHF_COMPRESSED != 0 && len(b) >= 24:
		d.size, d.data = le.Uint64(b[8:]), b[24:]
		switch typ := elf.CompressionType(le.Uint32(b)); typ {
		case elf.COMPRESS_ZLIB:
			d.pack = packZlib
		case elf.COMPRESS_ZSTD:
			d.pack = packZstd
		default:
			return d, fmt.Errorf("%s: compression %v is not known", s.name, typ)
		}
	case name != s.name && len(b) >= 12 && string(b[:4]) == "ZLIB":
		d.pack, d.size, d.data = packZlib, binary.BigEndian.Uint64(b[4:]), b[12:]
	case s.flags&elf.SHF_COMPRESSED != 0 || name != s.name:
		return d, fmt.Errorf("%s: %d bytes hold no header: %w", s.name, len(b), ErrDamaged)
	}
	return d, nil
}

// unpack gives the section's bytes: exactly as many as the file claims.
func (d *debugSection) unpack() (b []byte, err error) {
	if most := unpackLimit(uint64(len(d.data)), maxDebug); d.pack != packNone && d.size > most {
		return nil, fmt.Errorf("%s: %d bytes unpacked of %d, at most %d: %w", d.name, d.size, len(d.data), most, ErrTooBig)
	}
	switch d.pack {
	case packNone:
		return d.data, nil
	case packZlib:
		b, err = unpackZlib(d.data, d.size)
	case packZstd:
		b, err = unpackZstd(d.data, d.size)
	}
	if err == nil && uint64(len(b)) != d.size {
		err = fmt.Errorf("%d bytes unpacked of %d: %w", len(b), d.size, ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	d.pack, d.data = packNone, b
	return b, nil
}

func unpackZlib(data []byte, size uint64) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	b := make([]byte, size)
	n, err := io.ReadFull(z, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return b[:n], err
}

// unpackZstd unpacks in one piece: a stream would take what memory its window is
// said to need.
func unpackZstd(data []byte, size uint64) ([]byte, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return z.DecodeAll(data, make([]byte, 0, size))
}

const maxZstdWindow = 128 << 20 // as the zstd command without --long
