package symbol

import (
	"context"
	"debug/dwarf"
	"slices"
)

const (
	maxInlined  = 64      // functions inlined into each other
	maxOrigins  = 8       // steps from an inlined copy to its name
	maxDieDepth = 256     // of a function's own tree
	maxFuncDies = 1 << 20 // of it
)

// Place is where an address is in the source, in one of several functions
// inlined into each other.
type Place struct {
	Function string // demangled; "" in the outermost, which the symbol names
	Start    uint64 // where this copy of the function begins
	File     string // "" not known
	Line     uint32 // 0: not known
}

// Places returns the inlined functions that hold pc, innermost first, and last
// the function they are in. nil: nothing is known.
func (t *lineTable) Places(ctx context.Context, pc uint64) ([]Place, error) {
	if pc+1 == 0 {
		return nil, nil
	}
	u, err := t.unitOf(ctx, pc)
	if u == nil || err != nil {
		return nil, err
	}
	file, line := u.line(pc)
	var out []Place
	for _, p := range t.inlined(ctx, u, pc) {
		callFile, callLine := p.File, p.Line
		p.File, p.Line = file, line
		out = append(out, p)
		file, line = callFile, callLine
	}
	return append(out, Place{File: file, Line: line}), nil
}

// readFuncs lists the functions that have code; r stands inside the unit.
func (u *unit) readFuncs(ctx context.Context, d *dwarf.Data, r *dwarf.Reader) error {
	depth := 1
	for n := 0; depth > 0; n++ {
		e, err := r.Next()
		if err != nil {
			return err
		}
		if e == nil {
			break
		}
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch e.Tag {
		case 0:
			depth--
			continue
		case dwarf.TagNamespace, dwarf.TagModule, dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType:
			if e.Children {
				depth++
			}
			continue
		case dwarf.TagCompileUnit:
			depth = 0
			continue
		case dwarf.TagSubprogram:
			u.addFunc(d, e)
		}
		if err := skip(ctx, r, e); err != nil {
			return err
		}
	}
	u.funcs.sort()
	return nil
}

func (u *unit) addFunc(d *dwarf.Data, e *dwarf.Entry) {
	if !e.Children {
		return // nothing can be inlined into it
	}
	u.funcs.add(d, e, maxUnitBytes/24)
}

// inlined returns the copies of functions inlined into others that hold pc, innermost
// first. Their lines are those of the calls that they replace.
func (t *lineTable) inlined(ctx context.Context, u *unit, pc uint64) []Place {
	off, ok := u.funcs.holding(pc)
	if !ok {
		return nil
	}
	r := t.data.Reader()
	r.Seek(off)
	r.Next()
	var out []Place
	depth, inside := 1, 1 // inside: the depth in the innermost copy found
	for n := 0; n < maxFuncDies && depth > 0 && depth < maxDieDepth && len(out) < maxInlined; n++ {
		e, err := r.Next()
		if err != nil || e == nil || n%4096 == 0 && ctx.Err() != nil {
			break
		}
		if e.Tag == 0 {
			if depth--; depth < inside {
				break // the end of what holds pc
			}
			continue
		}
		inlined, block := e.Tag == dwarf.TagInlinedSubroutine, e.Tag == dwarf.TagLexDwarfBlock
		start, holds := uint64(0), false
		if inlined || block {
			start, holds = t.holds(e, pc)
		}
		if !holds && !(block && !hasRanges(e)) {
			if skip(ctx, r, e) != nil {
				break
			}
			continue
		}
		if holds && inlined {
			out, inside = append(out, t.copyOf(u, e, start)), depth+1
		}
		if e.Children {
			depth++
		} else if depth < inside {
			break // the innermost copy has nothing in it
		}
	}
	slices.Reverse(out)
	return slices.DeleteFunc(out, func(p Place) bool { return p.Function == "" })
}

func hasRanges(e *dwarf.Entry) bool {
	return e.Val(dwarf.AttrLowpc) != nil || e.Val(dwarf.AttrRanges) != nil
}

// holds reports whether e's code includes pc, and where that piece begins.
func (t *lineTable) holds(e *dwarf.Entry, pc uint64) (uint64, bool) {
	ranges, err := t.data.Ranges(e)
	if err != nil {
		return 0, false
	}
	for _, p := range ranges {
		if p[0] <= pc && pc < p[1] {
			return p[0], true
		}
	}
	return 0, false
}

func (t *lineTable) copyOf(u *unit, e *dwarf.Entry, start uint64) Place {
	p := Place{Function: t.nameOf(e), Start: start}
	if line, ok := e.Val(dwarf.AttrCallLine).(int64); ok && line > 0 {
		p.Line = uint32(line)
	}
	if file, ok := e.Val(dwarf.AttrCallFile).(int64); ok {
		p.File = u.names.path(uint64(file))
	}
	return p
}

// nameOf follows an inlined copy to the function it is of. A name in a file
// shared by several debug files (dwz) is not known.
func (t *lineTable) nameOf(e *dwarf.Entry) string {
	plain := ""
	for range maxOrigins {
		if name, ok := e.Val(dwarf.AttrLinkageName).(string); ok && name != "" {
			return Demangle(name)
		}
		if name, ok := e.Val(dwarf.AttrName).(string); ok && plain == "" {
			plain = name
		}
		off, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if off, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				break
			}
		}
		r := t.data.Reader()
		r.Seek(off)
		next, err := r.Next()
		if err != nil || next == nil {
			break
		}
		e = next
	}
	return plain
}
