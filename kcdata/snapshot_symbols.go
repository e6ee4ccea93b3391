package kcdata

import "strings"

// Symbol names one kernel address.
type Symbol struct {
	Name   string
	Module string // "" for vmlinux
	Offset uint64 // from the symbol's start
	Size   uint64 // of the symbol; 0: not known
}

// SymbolTable names the kernel addresses that occur in a file. Nothing changes it after
// NewSymbolTable, so any number of goroutines may read it. A nil table names no address.
type SymbolTable struct{ byAddr map[uint64]Symbol }

// NewSymbolTable makes the table of a file's LinuxSymbol records; strs is the string table
// that their names are in. It leaves out a record without a name, and one whose name lies
// outside strs. Of two records for one address the first counts.
func NewSymbolTable[S ~string | ~[]byte](records []LinuxSymbol, strs S) *SymbolTable {
	text := stringTable(strs)
	t := &SymbolTable{make(map[uint64]Symbol, len(records))}
	for _, r := range records {
		name := text.at(r.Name, maxTableString)
		if _, known := t.byAddr[r.Addr]; known || name == "" {
			continue
		}
		t.byAddr[r.Addr] = Symbol{
			Name: name, Module: text.at(r.Module, maxTableString),
			Offset: uint64(r.Offset), Size: uint64(r.Size),
		}
	}
	return t
}

// Name returns the symbol that addr is in; ok is false if the file has no name for addr.
func (t *SymbolTable) Name(addr uint64) (sym Symbol, ok bool) {
	if t != nil {
		sym, ok = t.byAddr[addr]
	}
	return sym, ok
}

// Len returns the number of addresses that have a name.
func (t *SymbolTable) Len() int {
	if t == nil {
		return 0
	}
	return len(t.byAddr)
}

// maxTableString bounds one string of the kernel's table: a name is never longer.
const maxTableString = 512

// stringTable holds strings that records refer to by offset. The strings that at returns
// share the memory of the table: the records of a hostile file may name a million long
// strings that overlap.
type stringTable string

// at returns the NUL-terminated string at off, cut to most bytes. It is "" for offset 0 and
// for an offset outside the table.
func (t stringTable) at(off uint32, most int) string {
	if off == 0 || uint64(off) >= uint64(len(t)) {
		return ""
	}
	s := string(t[off:])
	s, _, _ = strings.Cut(s[:min(len(s), most)], "\x00")
	return s
}
