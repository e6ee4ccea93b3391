package procfs

import (
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
)

// KallsymsSymbol names an address.
type KallsymsSymbol struct {
	Name   string
	Module string // "" for vmlinux; "bpf" for BPF programs
	Offset uint64 // of the address from the symbol's start
	Size   uint64 // distance to the next symbol; 0: unknown, for the last one of a module
}

// kallsymsOpenEnd is the size in bytes that a symbol of unknown size has at most. An
// address beyond it has no name, rather than that of the last function before a gap.
const kallsymsOpenEnd = 64 << 10

// Resolve names a kernel text address. If several symbols share an address, it takes
// the first one of the file, as the kernel does.
//
// A return address after a call that never returns can be one past the end of
// its function: use ResolveReturn for the callers of a stack.
func (k *Kallsyms) Resolve(addr uint64) (sym KallsymsSymbol, ok bool) {
	// The first symbol above addr; the one before it holds addr.
	i := sort.Search(len(k.syms), func(i int) bool { return k.syms[i].addr > addr })
	if i == 0 {
		return KallsymsSymbol{}, false
	}
	for i--; i > 0 && k.syms[i-1].addr == k.syms[i].addr; i-- {
	}
	s := &k.syms[i]
	off := addr - s.addr
	if s.size == 0 && off >= kallsymsOpenEnd {
		return KallsymsSymbol{}, false
	}
	return KallsymsSymbol{Name: k.nameOf(uint32(i)), Module: k.modules[s.module], Offset: off, Size: uint64(s.size)}, true
}

// ResolveReturn names a return address by the call before it, as the kernel
// does in /proc/PID/stack: the offset may then equal the size. The start of a ret_from_
// function is no return address (a thread that has never run is at
// ret_from_fork_asm+0), and is named as Resolve does.
func (k *Kallsyms) ResolveReturn(addr uint64) (sym KallsymsSymbol, ok bool) {
	if sym, ok = k.Resolve(addr); ok && sym.Offset == 0 && strings.HasPrefix(sym.Name, "ret_from_") {
		return sym, true
	}
	sym, ok = k.Resolve(addr - 1)
	sym.Offset++
	return sym, ok
}

// Lookup returns the address of a symbol as /proc/PID/stack writes it:
// "name+0x1/0x2 [module]" with size 2; module "" for vmlinux and for BPF
// programs, which that file does not mark.
//
// Among several symbols of one name the size decides. A single one is taken
// whatever its size, because the table does not have the ends of modules, which the
// kernel knows. Errors: ErrKallsymsUnknown, ErrKallsymsAmbiguous.
func (k *Kallsyms) Lookup(name, module string, size uint64) (addr uint64, err error) {
	k.namedOnce.Do(k.sortNames)
	i, _ := slices.BinarySearchFunc(k.named, name, func(i uint32, n string) int {
		return strings.Compare(k.nameOf(i), n)
	})
	all, fits := 0, 0                 // different addresses of symbols of that name; of those that have the size too
	last, fit := uint64(0), uint64(0) // the last address of each; no symbol is at address 0
	for ; i < len(k.named) && k.nameOf(k.named[i]) == name; i++ {
		s := &k.syms[k.named[i]]
		if !kallsymsSameModule(module, k.modules[s.module]) || s.addr == last {
			continue
		}
		all, last = all+1, s.addr
		if uint64(s.size) == size {
			fits, fit = fits+1, s.addr
		}
	}
	switch {
	case all == 0:
		return 0, fmt.Errorf("%w: %s [%s]", ErrKallsymsUnknown, name, module)
	case all == 1:
		return last, nil
	case fits == 1:
		return fit, nil
	}
	return 0, fmt.Errorf("%w: %s [%s], %d of them, %d of size %#x", ErrKallsymsAmbiguous, name, module, all, fits, size)
}

// kallsymsSameModule reports whether the module of a stack line is that of the table.
// Pseudo modules are named in kallsyms only.
func kallsymsSameModule(stack, table string) bool {
	if stack == table {
		return true
	}
	return stack == "" && (table == "bpf" || strings.HasPrefix(table, "__builtin__"))
}

func (k *Kallsyms) sortNames() {
	k.named = make([]uint32, len(k.syms))
	for i := range k.named {
		k.named[i] = uint32(i)
	}
	slices.SortFunc(k.named, func(a, b uint32) int {
		if c := strings.Compare(k.nameOf(a), k.nameOf(b)); c != 0 {
			return c
		}
		return int(a) - int(b)
	})
}

// TextAddr returns the address of _text, or of _stext where the table has no
// _text; 0 where addresses are hidden.
func (k *Kallsyms) TextAddr() uint64 { return k.start }

// Hidden reports whether every address reads as zero: kptr_restrict, or a
// reader without CAP_SYSLOG.
func (k *Kallsyms) Hidden() bool { return k.hidden }

// Len returns the number of text symbols.
func (k *Kallsyms) Len() int { return len(k.syms) }

// KallsymsRange is where a function's text is: up to the next symbol.
type KallsymsRange struct{ Start, End uint64 }

// Text gives the functions of vmlinux whose size is known, ascending. A name may come
// more than once.
func (k *Kallsyms) Text() iter.Seq2[string, KallsymsRange] {
	return func(yield func(string, KallsymsRange) bool) {
		for i := range k.syms {
			s := &k.syms[i]
			if s.module != 0 || s.size == 0 {
				continue
			}
			if !yield(k.nameOf(uint32(i)), KallsymsRange{s.addr, s.addr + uint64(s.size)}) {
				return
			}
		}
	}
}
