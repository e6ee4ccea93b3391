package symbol

import (
	"stackshot/internal/elffile"
	"stackshot/internal/gopclntab"
)

const maxPCValueBytes = 1 << 20

// pclntab names the functions of a Go program by the table that its runtime needs.
// The table stays in the file. It is constant.
type pclntab struct{ gopclntab.Table }

// findPclntab returns nil for a file that is not Go's.
func findPclntab(in elffile.Reader, m *elffile.Layout) (*pclntab, error) {
	t, err := gopclntab.Open(in, m)
	if t == nil || err != nil {
		return nil, err
	}
	return &pclntab{*t}, nil
}

// find returns the function that holds vaddr: its entry, link-time, and the place of
// its _func in the table.
func (p *pclntab) find(in elffile.Reader, vaddr uint64) (entry, at uint64, ok bool) {
	if p == nil || vaddr < p.Text {
		return 0, 0, false
	}
	entry, at, ok = p.Find(func(off uint64) uint32 { return p.Word(in, off) }, vaddr-p.Text)
	return p.Text + entry, at, ok
}

func (p *pclntab) lookup(in elffile.Reader, vaddr uint64) (name string, start uint64, ok bool) {
	start, at, ok := p.find(in, vaddr)
	if !ok {
		return "", 0, false
	}
	name = in.Text(p.At, p.Names+uint64(p.Word(in, at+gopclntab.FuncName)), maxRawName)
	return name, start, name != ""
}

// line returns source file and line of vaddr, from the tables pcfile and pcln.
func (p *pclntab) line(in elffile.Reader, vaddr uint64) (file string, line uint32) {
	start, at, ok := p.find(in, vaddr)
	if !ok {
		return "", 0
	}
	pc := vaddr - start
	n, ok := p.value(in, p.Values+uint64(p.Word(in, at+gopclntab.FuncLine)), pc)
	if !ok || n <= 0 {
		return "", 0
	}
	fileno, ok := p.value(in, p.Values+uint64(p.Word(in, at+gopclntab.FuncFile)), pc)
	if !ok || fileno < 0 {
		return "", 0
	}
	unit := uint64(p.Word(in, at+gopclntab.FuncUnit)) + uint64(fileno)
	off := p.Word(in, p.Units+4*unit)
	if off == 0xffffffff {
		return "", 0
	}
	return in.Text(p.At, p.Files+uint64(off), maxRawName), uint32(n)
}

// value is that of a table of values at pc, which is relative to the function's
// entry.
func (p *pclntab) value(in elffile.Reader, off, pc uint64) (int32, bool) {
	if off >= p.At.Size {
		return 0, false
	}
	for n := uint64(4 << 10); ; n *= 16 { // nearly all are short
		b, err := in.Bytes(elffile.Span{Off: p.At.Off + off, Size: min(p.At.Size-off, n)}, maxPCValueBytes, "pcvalue")
		if err != nil {
			return 0, false
		}
		if v, ok := p.Value(b, pc); ok || n >= min(p.At.Size-off, maxPCValueBytes) {
			return v, ok
		}
	}
}
