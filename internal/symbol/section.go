package symbol

import (
	"fmt"
	"strings"

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
