package symbol

import (
	"context"
	"fmt"

	"stackshot/internal/cursor"
)

// Caps of what debug/dwarf makes of the units of one file, before it is asked.
const (
	maxUnits = 1 << 18
	// maxAbbrevShare is how often the abbreviations of a file may be read. Each unit
	// names where its table begins: each place is read to the table's end, and kept.
	// Compilers and linkers give each table a place of its own.
	maxAbbrevShare = 2

	formImplicitConst = 0x21
)

// openLines makes the table of lines of sections that are fit for it.
func openLines(ctx context.Context, sections []debugSection) (*lineTable, error) {
	var info, abbrev []byte
	for i := range sections {
		s := &sections[i]
		if s.name != ".debug_info" && s.name != ".debug_abbrev" {
			continue
		}
		b, err := s.unpack()
		if err != nil {
			return nil, err
		}
		if s.name == ".debug_info" {
			info = b
		} else {
			abbrev = b
		}
	}
	if err := checkUnits(info, abbrev); err != nil {
		return nil, fmt.Errorf(".debug_info: %w", err)
	}
	return newLineTable(ctx, sections)
}

// checkUnits refuses units that are too many, or whose tables of abbreviations lie
// within each other.
func checkUnits(info, abbrev []byte) error {
	seen := map[uint64]bool{}
	units, left := 0, maxAbbrevShare*len(abbrev)
	for c := (cursor.Cursor{Data: info}); c.Left() > 0; {
		off, empty, ok := nextUnit(&c)
		if !ok {
			return fmt.Errorf("a unit that ends before offset %#x: %w", c.Pos, ErrDamaged)
		}
		if empty {
			continue
		}
		if units++; units > maxUnits {
			return fmt.Errorf("more than %d units: %w", maxUnits, ErrTooBig)
		}
		if seen[off] || off >= uint64(len(abbrev)) {
			continue
		}
		seen[off] = true
		if left -= abbrevLen(abbrev[off:]); left < 0 {
			return fmt.Errorf("%d tables of abbreviations within %d bytes: %w", len(seen), len(abbrev), ErrTooBig)
		}
	}
	return nil
}

// nextUnit passes over a unit and returns where its abbreviations are.
func nextUnit(c *cursor.Cursor) (off uint64, empty, ok bool) {
	length, wide := uint64(c.U32()), false
	if length == 0xffffffff {
		length, wide = c.U64(), true
	}
	u := cursor.Cursor{Data: c.Take(length)}
	if c.Bad || length == 0 {
		return 0, true, !c.Bad
	}
	if u.U16() >= 5 {
		u.Take(2) // kind of unit, size of an address
	}
	if wide {
		off = u.U64()
	} else {
		off = uint64(u.U32())
	}
	return off, false, !u.Bad
}

// abbrevLen is the length of a table of abbreviations: to its end, or that of b.
func abbrevLen(b []byte) int {
	c := cursor.Cursor{Data: b}
	for c.Left() > 0 && c.ULEB() != 0 {
		c.ULEB() // tag
		c.U8()   // has children
		for !c.Bad {
			attr, form := c.ULEB(), c.ULEB()
			if form == formImplicitConst {
				c.SLEB()
			}
			if attr == 0 && form == 0 {
				break
			}
		}
	}
	if c.Bad {
		return len(b)
	}
	return c.Pos
}
