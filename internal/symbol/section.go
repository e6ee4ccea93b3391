package symbol

import (
	"debug/elf"
	"fmt"
	"strings"

	"stackshot/internal/elffile"
)

// maxDebug is how many bytes of debug sections of one file are kept, packed and
// unpacked.
const maxDebug = 768 << 20

// lineSections are those that lines and inlined functions come from.
var lineSections = map[string]bool{
	".debug_abbrev": true, ".debug_info": true, ".debug_line": true, ".debug_ranges": true, ".debug_str": true,
	".debug_addr": true, ".debug_line_str": true, ".debug_str_offsets": true, ".debug_rnglists": true,
}

// hasDebug reports whether the file has DWARF of its own.
func hasDebug(m *elffile.Layout) bool { return m.Section(".debug_info", ".zdebug_info") != nil }

// debugSections reads the sections of DWARF, still packed: that is all of it
// that needs the file.
func (f *File) debugSections() ([]elffile.Packed, error) {
	var out []elffile.Packed
	have := map[string]bool{}
	left := uint64(maxDebug)
	for i := range f.layout.Sections {
		s := &f.layout.Sections[i]
		name := strings.Replace(s.Name, ".zdebug_", ".debug_", 1)
		if s.Type == elf.SHT_NOBITS || !lineSections[name] || have[name] {
			continue // of several of one name readers take one
		}
		have[name] = true
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
