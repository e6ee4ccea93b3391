package kcdata

import (
	"cmp"
	"slices"
	"strings"
)

// Symbol names one kernel address.
type Symbol struct {
	Name   string
	Module string // "" for vmlinux
	Offset uint64 // from the symbol's start
	Size   uint64 // of the symbol; 0: not known
}

// SymbolTable names the kernel addresses that occur in a file. It is constant
// after it was made, so any number of goroutines may read it.
type SymbolTable struct {
	entries []symbolEntry // ascending by addr, one per addr
}

type symbolEntry struct {
	addr uint64
	sym  Symbol
}

// NewSymbolTable builds the table of the file's LinuxSymbol records over its
// string table. Records without a name, and those that point outside the
// string table, are left out: such an address is simply not known. Of two
// records for one address the first wins.
func NewSymbolTable(records []LinuxSymbol, strs []byte) *SymbolTable {
	return newSymbolTable(records, stringTable(strs))
}

func newSymbolTable(records []LinuxSymbol, text stringTable) *SymbolTable {
	t := &SymbolTable{entries: make([]symbolEntry, 0, len(records))}
	for _, r := range records {
		name := text.at(r.Name, maxTableString)
		if name == "" {
			continue
		}
		t.entries = append(t.entries, symbolEntry{r.Addr, Symbol{
			Name: name, Module: text.at(r.Module, maxTableString),
			Offset: uint64(r.Offset), Size: uint64(r.Size),
		}})
	}
	slices.SortStableFunc(t.entries, func(a, b symbolEntry) int { return cmp.Compare(a.addr, b.addr) })
	t.entries = slices.CompactFunc(t.entries, func(a, b symbolEntry) bool { return a.addr == b.addr })
	return t
}

// Name returns what addr is called. A nil table knows no address.
func (t *SymbolTable) Name(addr uint64) (Symbol, bool) {
	if t == nil {
		return Symbol{}, false
	}
	i, ok := slices.BinarySearchFunc(t.entries, addr, func(e symbolEntry, a uint64) int { return cmp.Compare(e.addr, a) })
	if !ok {
		return Symbol{}, false
	}
	return t.entries[i].sym, true
}

// Len returns the number of addresses the table names.
func (t *SymbolTable) Len() int {
	if t == nil {
		return 0
	}
	return len(t.entries)
}

// maxTableString bounds one string of the kernel's table: a name is never longer.
const maxTableString = 512

// stringTable holds strings that records refer to by offset. Those that it gives
// share its memory: records may claim long ones by the million, which lie within
// each other.
type stringTable string

// at returns the NUL-terminated string at off, cut to most bytes; 0 means none, as
// does an offset outside the table.
func (t stringTable) at(off uint32, most int) string {
	if off == 0 || uint64(off) >= uint64(len(t)) {
		return ""
	}
	s := string(t[off:])
	s, _, _ = strings.Cut(s[:min(len(s), most)], "\x00")
	return s
}
