package symbol

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"strings"

	"github.com/therootcompany/xz"

	"stackshot/internal/elffile"
)

// maxDebug is how many bytes of debug sections of one file are kept, packed and
// unpacked.
const maxDebug = 768 << 20

// lineSections are those that lines and inlined functions come from.
var lineSections = []string{
	".debug_abbrev", ".debug_info", ".debug_line", ".debug_ranges", ".debug_str",
	".debug_addr", ".debug_line_str", ".debug_str_offsets", ".debug_rnglists",
}

// hasDebug reports whether the file has DWARF of its own.
func hasDebug(m *elffile.Layout) bool { return m.Section(".debug_info", ".zdebug_info") != nil }

// debugSections reads the sections of DWARF, still packed: that is all of it
// that needs the file.
func (f *File) debugSections() ([]elffile.Packed, error) {
	var out []elffile.Packed
	left := uint64(maxDebug)
	for _, name := range lineSections {
		s := f.layout.Section(name, strings.Replace(name, ".debug_", ".zdebug_", 1))
		if s == nil {
			continue
		}
		p, err := f.in.Packed(s, left)
		if err != nil {
			return nil, err
		}
		left -= p.Held()
		if p.Size > left {
			return nil, fmt.Errorf("%s: %d bytes unpacked, at most %d left: %w", s.Name, p.Size, left, elffile.ErrTooBig)
		}
		left -= p.Size
		out = append(out, p)
	}
	return out, nil
}

const (
	maxMiniDebug     = 64 << 20 // of .gnu_debugdata, unpacked
	maxMiniDebugXZ   = 16 << 20 // of .gnu_debugdata
	maxMiniDebugDict = 64 << 20 // of its dictionary: what xz -9 takes
	usualDict        = 8 << 20  // what xz -6 takes, however little it packs
)

// addMiniDebug takes in the symbols of .gnu_debugdata: an ELF file, packed with
// xz, that has nothing but the .symtab that was stripped.
func (t *table) addMiniDebug(in elffile.Reader, m *elffile.Layout) error {
	s := m.Section(".gnu_debugdata")
	if s == nil {
		return nil
	}
	packed, err := in.Bytes(s.Span(), maxMiniDebugXZ, s.Name)
	if err != nil {
		return err
	}
	r, err := xz.NewReader(bytes.NewReader(packed), uint32(min(maxMiniDebugDict, max(in.Room, usualDict))))
	if err != nil {
		return fmt.Errorf("%s at offset %#x: %w", s.Name, s.Off, err)
	}
	most := elffile.UnpackLimit(s.Size, min(maxMiniDebug, in.Room))
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return fmt.Errorf("%s at offset %#x: %w", s.Name, s.Off, err)
	}
	if uint64(len(b)) > most {
		return fmt.Errorf("%s at offset %#x: %d bytes unpack to more than %d: %w", s.Name, s.Off, s.Size, most, elffile.ErrTooBig)
	}
	mini := elffile.NewReader(bytes.NewReader(b), int64(len(b)))
	mini.Room = in.Room
	inner, err := elffile.Read(mini)
	if err != nil {
		return fmt.Errorf("%s at offset %#x: %w", s.Name, s.Off, err)
	}
	return t.addSymbols(mini, inner, elf.SHT_SYMTAB, true)
}
