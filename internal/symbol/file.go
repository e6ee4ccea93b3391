package symbol

import (
	"debug/elf"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"

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

// contents is what Open read. Names stay in the file until somebody asks for them.
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

// Open reads the tables of an ELF file of size bytes. It leaves out a table that it
// cannot read, and lists the error in problems. It fails if it cannot read the headers:
// elffile.ErrNotELF, elffile.ErrDamaged, the reader's error.
func Open(r io.ReaderAt, size int64) (*File, error) { return open(elffile.NewReader(r, size)) }

func open(in elffile.Reader) (*File, error) {
	m, err := elffile.Read(in)
	if err != nil {
		return nil, err
	}
	c := &contents{layout: m}
	c.build, _ = elfnote.BuildID(in) // a file with damaged notes counts as one without a build-id
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

// rebase turns an address of a mapping into the one that a debug file was linked for,
// when the mapped file itself is not at hand. The segments of a debug file have
// addresses, but no places in the file. So rebase recognizes only a mapping of one
// whole executable segment.
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

const (
	// maxMangled is the longest name that Demangle demangles: the work grows faster
	// than the length.
	maxMangled = 8 << 10
	// maxName is the longest name that Demangle gives, bytes: a snapshot's strings
	// have at most 4,096.
	maxName = 4000
)

// Demangle makes a symbol's name readable: C++ and Rust without parameters,
// return type and hash, with template arguments; all others as they are.
func Demangle(raw string) string {
	name := raw
	if mangled(raw) && len(raw) <= maxMangled {
		if s, err := demangle.ToString(raw, demangle.NoParams, demangle.NoEnclosingParams, demangle.NoABITags, demangle.MaxLength(14)); err == nil && s != "" {
			name = s
		}
	}
	if len(name) <= maxName {
		return name
	}
	cut := maxName
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + "..."
}

func mangled(s string) bool {
	return strings.HasPrefix(s, "_Z") || strings.HasPrefix(s, "_R") || strings.HasPrefix(s, "___Z")
}
