package symbol

import (
	"debug/dwarf"
	"fmt"

	"stackshot/internal/cursor"
	"stackshot/internal/elffile"
)

// Caps of what debug/dwarf makes of the units of one file, before it is asked.
const (
	maxUnits = 1 << 18
	// maxAbbrevShare is how often the abbreviations of a file may be read. Each unit
	// names where its table begins: each place is read to the table's end, and kept.
	// Compilers and linkers give each table a place of its own.
	maxAbbrevShare = 2

	unitCompile  = 1 // DW_UT_compile
	unitSkeleton = 4 // DW_UT_skeleton

	formImplicitConst = 0x21
)

// unitHead is what the header of a unit says, of DWARF 2 to 5.
type unitHead struct {
	abbrev uint64       // where its abbreviations begin
	first  dwarf.Offset // its first entry; 0: it has no code
}

// readUnits lists the units. It refuses those that are too many, or whose tables of
// abbreviations lie within each other. The reader of debug/dwarf can go from unit
// to unit too, but walks the last one whole, and calls itself for each level.
func readUnits(info, abbrev []byte) (units []unitHead, err error) {
	seen := map[uint64]bool{}
	left := maxAbbrevShare * len(abbrev)
	for c := (cursor.Cursor{Data: info}); c.Left() > 0; {
		u, empty, ok := nextUnit(&c)
		if !ok {
			return nil, fmt.Errorf("a unit that ends before offset %#x: %w", c.Pos, elffile.ErrDamaged)
		}
		if empty {
			continue
		}
		if units = append(units, u); len(units) > maxUnits {
			return nil, fmt.Errorf("more than %d units: %w", maxUnits, elffile.ErrTooBig)
		}
		if seen[u.abbrev] || u.abbrev >= uint64(len(abbrev)) {
			continue
		}
		seen[u.abbrev] = true
		if left -= abbrevLen(abbrev[u.abbrev:]); left < 0 {
			return nil, fmt.Errorf("%d tables of abbreviations within %d bytes: %w", len(seen), len(abbrev), elffile.ErrTooBig)
		}
	}
	return units, nil
}

// nextUnit passes over a unit.
func nextUnit(c *cursor.Cursor) (u unitHead, empty, ok bool) {
	length, wide := c.Length()
	begin := c.Pos
	in := cursor.Cursor{Data: c.Take(length)}
	if c.Bad || length == 0 {
		return u, true, !c.Bad
	}
	version, kind := in.U16(), uint8(unitCompile)
	if version >= 5 {
		kind = in.U8()
		in.U8() // size of an address
	}
	u.abbrev = in.Offset(wide)
	ok = !in.Bad
	if version < 5 {
		in.U8() // size of an address
	}
	if kind == unitSkeleton {
		in.Take(8) // the id of its .dwo file
	}
	if (kind == unitCompile || kind == unitSkeleton) && !in.Bad && in.Left() > 0 {
		u.first = dwarf.Offset(begin + in.Pos)
	}
	return u, false, ok
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
