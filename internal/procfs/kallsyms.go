package procfs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Errors of the symbol table.
var (
	ErrKallsymsFormat    = errors.New("not in the form of /proc/kallsyms")
	ErrKallsymsUnknown   = errors.New("no such kernel symbol")
	ErrKallsymsAmbiguous = errors.New("more than one kernel symbol of that name")
)

// Kallsyms is the kernel's own symbol table, sorted by address. It is constant
// after ParseKallsyms, so any number of goroutines may use it.
//
// It holds symbols of text only: absolute per-CPU offsets (type A) and data would give
// a return address a wrong name. Programs of the BPF just-in-time compiler are in it too,
// in the pseudo module "bpf".
type Kallsyms struct {
	text    string    // the whole file; names are substrings of it
	syms    []kallsym // text symbols, ascending by addr; aliases stay in file order
	modules []string  // index 0 is vmlinux, ""
	hidden  bool      // every address reads as zero
	start   uint64    // _text, or _stext where there is none

	// named holds indexes into syms, ascending by name, then address. The first
	// Lookup sorts it.
	named     []uint32
	namedOnce sync.Once
}

// kallsym is one symbol. It has 24 bytes, so a table of 200,000 symbols stays small.
type kallsym struct {
	addr   uint64
	name   uint32 // offset in text
	length uint16 // of the name
	module uint16 // index in modules
	size   uint32 // distance to the next symbol at another address; 0: unknown
}

// ReadKallsyms reads the table of the running kernel below root ("/proc").
func ReadKallsyms(root string) (*Kallsyms, error) {
	f, err := os.Open(filepath.Join(root, "kallsyms"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// The size of a /proc file is unknown. A buffer of about the usual size need not
	// grow, and so is not copied.
	b := bytes.NewBuffer(make([]byte, 0, 8<<20))
	if _, err := io.Copy(b, f); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	k, err := ParseKallsyms(b.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return k, nil
}

// maxKallsymsText is the largest text: every offset in it fits into a uint32.
const maxKallsymsText = 1<<32 - 1

// ParseKallsyms parses the text of /proc/kallsyms: lines of "address type name", with
// "\t[module]" if the symbol is not in vmlinux.
func ParseKallsyms(text string) (*Kallsyms, error) {
	if len(text) > maxKallsymsText {
		return nil, fmt.Errorf("%w: %d bytes", ErrKallsymsFormat, len(text))
	}
	k := &Kallsyms{text: text, modules: []string{""}, hidden: true}
	k.syms = make([]kallsym, 0, len(text)/48)
	index := map[string]uint16{"": 0}
	lines, off := 0, 0
	for line := range strings.Lines(text) {
		lines++
		if err := k.line(off, strings.TrimSuffix(line, "\n"), index); err != nil {
			return nil, fmt.Errorf("line %d: %w", lines, err)
		}
		off += len(line)
	}
	if lines == 0 {
		return nil, fmt.Errorf("%w: empty", ErrKallsymsFormat)
	}
	k.sort()
	return k, nil
}

// line adds the symbol of one line, which begins at off in the text.
func (k *Kallsyms) line(off int, line string, index map[string]uint16) error {
	digits, rest, _ := strings.Cut(line, " ")
	addr, ok := parseHex(digits)
	if !ok || len(rest) < len("t n") || rest[1] != ' ' {
		return fmt.Errorf("%w: %.80q", ErrKallsymsFormat, line)
	}
	kind, nameAt := rest[0], len(line)-len(rest)+len("t ")
	name, module, _ := strings.Cut(line[nameAt:], "\t")
	if name == "" || len(name) > 1<<16-1 {
		return fmt.Errorf("%w: name of %d bytes", ErrKallsymsFormat, len(name))
	}
	if addr != 0 {
		k.hidden = false
	}
	isText := strings.IndexByte("TtWw", kind) >= 0 // nm's letters for code; W: a weak function
	if addr == 0 || !isText {
		return nil
	}
	if name == "_text" || name == "_stext" && k.start == 0 {
		k.start = addr
	}
	module = strings.Trim(module, "[]")
	mod, ok := index[module]
	if !ok {
		if len(k.modules) > 1<<16-1 {
			return fmt.Errorf("%w: more than %d modules", ErrKallsymsFormat, len(k.modules))
		}
		mod = uint16(len(k.modules))
		k.modules = append(k.modules, module)
		index[module] = mod
	}
	k.syms = append(k.syms, kallsym{addr: addr, name: uint32(off + nameAt), length: uint16(len(name)), module: mod})
	return nil
}

// sort orders the symbols by address and computes their sizes.
func (k *Kallsyms) sort() {
	byAddr := func(a, b kallsym) int { return cmp.Compare(a.addr, b.addr) }
	// vmlinux comes sorted, modules and BPF programs follow in their own order.
	if !slices.IsSortedFunc(k.syms, byAddr) {
		slices.SortStableFunc(k.syms, byAddr)
	}
	for i := len(k.syms) - 2; i >= 0; i-- {
		s, next := &k.syms[i], &k.syms[i+1]
		switch {
		case s.addr == next.addr:
			s.size = next.size
		case s.module == next.module && next.addr-s.addr <= 1<<32-1:
			s.size = uint32(next.addr - s.addr)
		}
	}
}

func (k *Kallsyms) nameOf(i uint32) string {
	s := &k.syms[i]
	return k.text[s.name : s.name+uint32(s.length)]
}

// TextOnly gives the symbols that the table holds, as a text from which ParseKallsyms makes
// the same table: ascending by address.
func (k *Kallsyms) TextOnly() string {
	var b strings.Builder
	for i := range k.syms {
		s := &k.syms[i]
		fmt.Fprintf(&b, "%x t %s", s.addr, k.nameOf(uint32(i)))
		if s.module != 0 {
			fmt.Fprintf(&b, "\t[%s]", k.modules[s.module])
		}
		b.WriteByte('\n')
	}
	return b.String()
}
