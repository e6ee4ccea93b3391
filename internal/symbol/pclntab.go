package symbol

import (
	"stackshot/internal/elffile"
	"stackshot/internal/gopclntab"
)

const maxPCValueBytes = 1 << 20 // of one table of values

// goFunc finds the function of a Go program that holds vaddr, by the table that its
// runtime needs: its start, link-time, and the place of its _func in the table, which
// stays in the file.
func (f *File) goFunc(vaddr uint64) (start, at uint64, ok bool) {
	if f.goTable == nil || vaddr < f.goTable.Text {
		return 0, 0, false
	}
	start, at, ok = f.goTable.Find(f.goWord, vaddr-f.goTable.Text)
	return f.goTable.Text + start, at, ok
}

func (f *File) goWord(off uint64) uint32 { return f.goTable.Word(f.in, off) }

func (f *File) goText(off uint64) string { return f.in.Text(f.goTable.At, off, maxRawName) }

// goName names the function that holds vaddr.
func (f *File) goName(vaddr uint64) (name string, start uint64, ok bool) {
	start, at, ok := f.goFunc(vaddr)
	if !ok {
		return "", 0, false
	}
	name = f.goText(f.goTable.Names + uint64(f.goWord(at+gopclntab.FuncName)))
	return name, start, name != ""
}

// SourceLine returns what Go's own table says of vaddr; "", 0 where there is
// none. Functions inlined there are not known to it.
func (f *File) SourceLine(vaddr uint64) (file string, line uint32) {
	start, at, ok := f.goFunc(vaddr)
	if !ok {
		return "", 0
	}
	pc := vaddr - start
	n, ok := f.goValue(f.goWord(at+gopclntab.FuncLine), pc)
	if !ok || n <= 0 {
		return "", 0
	}
	fileno, ok := f.goValue(f.goWord(at+gopclntab.FuncFile), pc)
	if !ok || fileno < 0 {
		return "", 0
	}
	unit := uint64(f.goWord(at+gopclntab.FuncUnit)) + uint64(fileno)
	off := f.goWord(f.goTable.Units + 4*unit)
	if off == 0xffffffff {
		return "", 0
	}
	return f.goText(f.goTable.Files + uint64(off)), uint32(n)
}

// goValue is the value at pc, relative to the function's start, of the table of values
// at offset from.
func (f *File) goValue(from uint32, pc uint64) (int32, bool) {
	p := f.goTable
	off := p.Values + uint64(from)
	if off >= p.At.Size {
		return 0, false
	}
	for n := uint64(4 << 10); ; n *= 16 { // nearly all are short
		b, err := f.in.Bytes(elffile.Span{Off: p.At.Off + off, Size: min(p.At.Size-off, n)}, maxPCValueBytes, "pcvalue")
		if err != nil {
			return 0, false
		}
		if v, ok := p.Value(b, pc); ok || n >= min(p.At.Size-off, maxPCValueBytes) {
			return v, ok
		}
	}
}
