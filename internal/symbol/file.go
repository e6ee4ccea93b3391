package symbol

import (
	"debug/elf"
	"fmt"
	"io"
	"slices"

	"stackshot/internal/elffile"
	"stackshot/internal/elfnote"
	"stackshot/internal/gopclntab"
)

// File names the addresses of one ELF file, by the addresses it was linked for.
// All but its reader is constant after Open, and outlives the reader.
type File struct {
	*contents
	in elffile.Reader
}

// contents is what Open read. Names are not in it: they stay in the file.
type contents struct {
	layout   *elffile.Layout
	build    []byte
	link     debugLink
	syms     table
	goTable  *gopclntab.Table // nil: not a Go program
	full     bool             // syms has a .symtab
	problems []error
}

// Function is one function of a file.
type Function struct {
	Raw   string // as in the file, without its version
	Name  string // demangled
	Start uint64 // address it was linked for
}

// Open reads the tables of an ELF file of size bytes. A table that cannot be
// read is left out and told in its problems; elffile.ErrNotELF and elffile.ErrDamaged are of files
// whose headers cannot be read.
func Open(r io.ReaderAt, size int64) (*File, error) {
	in := elffile.NewReader(r, size)
	m, err := elffile.Read(in)
	if err != nil {
		return nil, err
	}
	c := &contents{layout: m}
	c.build, _ = elfnote.BuildID(r) // what is wrong with the notes is no matter: there is none
	c.link, err = readDebugLink(in, m)
	c.note(err)
	c.full = slices.ContainsFunc(m.Sections, func(s elffile.Section) bool { return s.Type == elf.SHT_SYMTAB && s.Size > symSize })
	c.note(c.syms.addSymbols(in, m, elf.SHT_SYMTAB, false))
	c.note(c.syms.addSymbols(in, m, elf.SHT_DYNSYM, false))
	all := c.full
	if !c.full {
		n := len(c.syms.syms)
		c.note(c.syms.addMiniDebug(in, m))
		all = len(c.syms.syms) > n
	}
	c.syms.seal(all)
	c.goTable, err = gopclntab.Open(in, m)
	c.note(err)
	return &File{c, in}, nil
}

func (c *contents) note(err error) {
	if err != nil {
		c.problems = append(c.problems, err)
	}
}

// Vaddr turns an offset in the file, in bytes, into an address that it was
// linked for.
func (f *File) Vaddr(off uint64) (uint64, bool) { return f.layout.Segments.Address(off, 0) }

// Function returns the function that holds vaddr.
func (f *File) Function(vaddr uint64) (Function, bool) {
	raw, start, ok := f.syms.lookup(f.in, vaddr)
	if f.goTable != nil {
		if !ok {
			raw, start, ok = f.goName(vaddr)
		}
		return Function{raw, raw, start}, ok
	}
	return Function{raw, Demangle(raw), start}, ok
}

// bytes is about what f keeps in memory.
func (c *contents) bytes() int { return c.syms.bytes() + len(c.layout.Sections)*128 + 1024 }

// rebase turns an address of a mapping into one that a debug file was linked
// for, where the file that was mapped is not at hand. A debug file's segments
// have their addresses but not their places in the file: so only a mapping of
// one whole executable segment can be known again.
func (f *File) rebase(start, end, addr uint64) (uint64, error) {
	const page = 4096
	for _, p := range f.layout.Segments {
		lo := p.Vaddr &^ (page - 1)
		if hi := (p.Vaddr + p.Memsz + page - 1) &^ (page - 1); p.Flags&elf.PF_X != 0 && hi-lo == end-start {
			return lo + (addr - start), nil
		}
	}
	return 0, fmt.Errorf("no segment of the debug file has the mapping's %d bytes", end-start)
}
