package symbol

import (
	"cmp"
	"context"
	"debug/dwarf"
	"fmt"
	"math"
	"slices"
	"sync"

	"stackshot/internal/cursor"
	"stackshot/internal/elffile"
)

const (
	// maxUnitBytes bounds the units of one file that are kept parsed.
	maxUnitBytes = 64 << 20
	// maxUnitRanges bounds the pieces of code of all units.
	maxUnitRanges = 4 << 20
)

// lineTable finds source lines and inlined functions in the DWARF of one file. It
// does not need the file any more. Safe to call concurrently.
type lineTable struct {
	data   *dwarf.Data // constant; without the lines
	texts  lineTexts   // constant
	ranges codeRanges  // of the units; constant
	size   int         // bytes of the sections; constant

	mu    sync.Mutex
	units map[dwarf.Offset]*unit // parsed ones; under mu
	bytes int                    // of units; under mu
}

// codeRanges are pieces of code, ascending once they are sorted.
type codeRanges []codeRange

// codeRange is one piece of the code of an entry, a unit or a function.
type codeRange struct {
	lo, hi uint64
	off    dwarf.Offset // of the entry
}

// add adds the pieces of e, as long as there are fewer than most.
func (c *codeRanges) add(d *dwarf.Data, e *dwarf.Entry, most int) {
	ranges, err := d.Ranges(e)
	if err != nil {
		return // of this entry nothing is known
	}
	for _, p := range ranges {
		if p[0] < p[1] && len(*c) < most {
			*c = append(*c, codeRange{p[0], p[1], e.Offset})
		}
	}
}

func (c codeRanges) sort() {
	slices.SortFunc(c, func(a, b codeRange) int { return cmp.Compare(a.lo, b.lo) })
}

// holding gives the entry whose code holds pc.
func (c codeRanges) holding(pc uint64) (dwarf.Offset, bool) {
	i, _ := slices.BinarySearchFunc(c, pc+1, func(r codeRange, a uint64) int { return cmp.Compare(r.lo, a) })
	if i == 0 || pc >= c[i-1].hi {
		return 0, false
	}
	return c[i-1].off, true
}

// unit is one compilation unit. It is constant after it was parsed.
type unit struct {
	rows  []lineRow // ascending
	names fileNames
	funcs codeRanges // a function in several pieces has several
}

type lineRow struct {
	addr uint64
	file uint32 // number in the line table; gap: nothing is known from here on
	line uint32 // 0: of no line, as the compiler says of code of its own
}

const gap = math.MaxUint32

// newLineTable unpacks the sections, and finds out which unit has which code. It
// parses a unit only when an address in it is asked for.
func newLineTable(ctx context.Context, sections []elffile.Packed) (*lineTable, error) {
	b := map[string][]byte{}
	t := &lineTable{units: map[dwarf.Offset]*unit{}}
	for i := range sections {
		data, err := sections[i].Unpack(maxDebug)
		if err != nil {
			return nil, err
		}
		b[sections[i].Name] = data
		t.size += len(data)
	}
	units, err := readUnits(b[".debug_info"], b[".debug_abbrev"])
	if err != nil {
		return nil, fmt.Errorf(".debug_info: %w", err)
	}
	t.texts = lineTexts{line: b[".debug_line"], lineStr: b[".debug_line_str"], str: b[".debug_str"]}
	t.data, err = dwarf.New(b[".debug_abbrev"], nil, nil, b[".debug_info"], nil, nil, b[".debug_ranges"], b[".debug_str"])
	if err != nil {
		return nil, fmt.Errorf(".debug_info: %w", err)
	}
	for _, name := range []string{".debug_addr", ".debug_line_str", ".debug_str_offsets", ".debug_rnglists"} {
		if len(b[name]) == 0 {
			continue
		}
		if err := t.data.AddSection(name, b[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return t, t.index(ctx, units)
}

// index notes which unit has which code.
func (t *lineTable) index(ctx context.Context, units []unitHead) error {
	for _, u := range units {
		if err := ctx.Err(); err != nil {
			return err
		}
		if u.first == 0 {
			continue
		}
		r := t.data.Reader()
		r.Seek(u.first)
		e, err := r.Next()
		if err != nil || e == nil || e.Tag != dwarf.TagCompileUnit {
			continue // of this unit nothing is known
		}
		t.ranges.add(t.data, e, maxUnitRanges)
	}
	t.ranges.sort()
	return nil
}

// skip goes past the children of e, which r has just read.
func skip(ctx context.Context, r *dwarf.Reader, e *dwarf.Entry) error {
	if !e.Children {
		return nil
	}
	if off, ok := e.Val(dwarf.AttrSibling).(dwarf.Offset); ok && off > e.Offset {
		r.Seek(off)
		return nil
	}
	depth := 1
	for n := 0; depth > 0; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e, err := r.Next()
		if err != nil || e == nil {
			return err
		}
		if e.Tag == 0 {
			depth--
		} else if e.Children {
			depth++
		}
	}
	return nil
}

// unitOf returns the unit that holds pc; nil without one.
func (t *lineTable) unitOf(ctx context.Context, pc uint64) (*unit, error) {
	off, ok := t.ranges.holding(pc)
	if !ok {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := t.units[off]; u != nil {
		return u, nil
	}
	u, err := t.parse(ctx, off)
	if err != nil {
		return nil, err
	}
	if t.bytes += u.bytes(); t.bytes > maxUnitBytes {
		clear(t.units)
		t.bytes = u.bytes()
	}
	t.units[off] = u
	return u, nil
}

func (u *unit) bytes() int {
	return len(u.rows)*16 + len(u.funcs)*24 + (len(u.names.dirs)+len(u.names.files))*32
}

func (t *lineTable) parse(ctx context.Context, off dwarf.Offset) (*unit, error) {
	r := t.data.Reader()
	r.Seek(off)
	e, err := r.Next()
	if err != nil || e == nil {
		return nil, fmt.Errorf(".debug_info at %#x: no unit: %w", off, err)
	}
	u := &unit{}
	if u.rows, u.names, err = readRows(ctx, &t.texts, e); err != nil {
		return nil, fmt.Errorf(".debug_line of the unit at %#x: %w", off, err)
	}
	u.sortRows()
	if err := u.readFuncs(ctx, t.data, r); err != nil {
		return nil, fmt.Errorf(".debug_info of the unit at %#x: %w", off, err)
	}
	return u, nil
}

// readRows reads the line table of the unit that e is of, in its own order.
func readRows(ctx context.Context, in *lineTexts, e *dwarf.Entry) ([]lineRow, fileNames, error) {
	off, ok := e.Val(dwarf.AttrStmtList).(int64)
	if !ok {
		return nil, fileNames{}, nil // it has no lines
	}
	comp, _ := e.Val(dwarf.AttrCompDir).(string)
	head, code, err := readLineHead(in, uint64(off), comp)
	if err != nil {
		return nil, fileNames{}, err
	}
	m := &lineMachine{head: head, in: cursor.Cursor{Data: code}}
	rows, err := m.run(ctx)
	return rows, head.names, err
}

// sortRows orders the rows by address. If one sequence ends where another begins, the
// beginning counts. If a sequence has several rows at one address, the last one counts.
func (u *unit) sortRows() {
	slices.SortStableFunc(u.rows, func(a, b lineRow) int {
		if c := cmp.Compare(a.addr, b.addr); c != 0 || a.file == gap == (b.file == gap) {
			return c
		}
		if a.file == gap {
			return -1
		}
		return 1
	})
}

// line returns file and line of pc.
func (u *unit) line(pc uint64) (string, uint32) {
	i, _ := slices.BinarySearchFunc(u.rows, pc+1, func(r lineRow, a uint64) int { return cmp.Compare(r.addr, a) })
	if i == 0 || u.rows[i-1].file == gap {
		return "", 0
	}
	return u.names.path(uint64(u.rows[i-1].file)), u.rows[i-1].line
}
