package kcdata

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Mapping is one executable mapping of a task.
type Mapping struct {
	LinuxMapping
	Path    string // "" without a file
	BuildID []byte // nil: not known
}

// UserBytes is a piece of a thread's stack.
type UserBytes struct {
	Addr uint64
	Data []byte
}

// UserFunction is one function that a user address is in.
type UserFunction struct {
	Name   string
	Module string // path of the file, "[jit]", "[vdso]"; "" not known
	Offset uint64 // from the function's start
	File   string // source file; "" not known
	Line   uint32 // 0: not known
}

// UserSymbolTable names addresses of one task's user stacks. It is constant
// after it was made.
type UserSymbolTable struct {
	addrs []uint64 // ascending
	funcs [][]UserFunction
}

// NewUserSymbolTable builds the table of a task's records over its string table.
// The records of one address keep their order, innermost function first; one
// without a name is left out unless it names a module.
func NewUserSymbolTable(records []LinuxUserSymbol, strs []byte) *UserSymbolTable {
	sorted := slices.Clone(records)
	slices.SortStableFunc(sorted, func(a, b LinuxUserSymbol) int { return cmp.Compare(a.Addr, b.Addr) })
	t := &UserSymbolTable{}
	text := stringTable(strs)
	for _, r := range sorted {
		f := UserFunction{
			Name: text.at(r.Name, maxUserString), Module: text.at(r.Module, maxUserString),
			Offset: r.Offset, File: text.at(r.File, maxUserString), Line: r.Line,
		}
		if f.Name == "" && f.Module == "" {
			continue
		}
		if n := len(t.addrs); n == 0 || t.addrs[n-1] != r.Addr {
			t.addrs, t.funcs = append(t.addrs, r.Addr), append(t.funcs, nil)
		}
		last := &t.funcs[len(t.funcs)-1]
		*last = append(*last, f)
	}
	return t
}

// Functions returns the functions that addr is in, innermost first; nil if it is
// not known. A nil table knows no address.
func (t *UserSymbolTable) Functions(addr uint64) []UserFunction {
	if t == nil {
		return nil
	}
	i, ok := slices.BinarySearch(t.addrs, addr)
	if !ok {
		return nil
	}
	return t.funcs[i]
}

// Len returns the number of addresses that the table names.
func (t *UserSymbolTable) Len() int {
	if t == nil {
		return 0
	}
	return len(t.addrs)
}

// maxUserString bounds one string of a task's table. C++ has long names: it may be
// as long as a path.
const maxUserString = 4096

// userParser keeps what of a task points into a string table that may come later.
type userParser struct {
	mappings []LinuxMapping
	names    map[int]string // of mappings, by index: those from the window
	cmdline  []byte         // from the window
	symbols  []LinuxUserSymbol
	strings  []byte
}

// closeTask ends the open task, if there is one.
func (p *snapshotParser) closeTask() {
	if p.task == nil {
		return
	}
	text := stringTable(p.user.strings)
	outside := slices.ContainsFunc(p.user.mappings, func(m LinuxMapping) bool { return m.Flags&MappingInWindow == 0 })
	for i, m := range p.user.mappings {
		if outside && m.Flags&MappingInWindow != 0 {
			continue // /proc answered after all, and knows whole paths
		}
		out := m.mapping(text)
		if name := p.user.names[i]; name != "" {
			out.Path = name
		}
		p.task.Mappings = append(p.task.Mappings, out)
	}
	if p.task.Cmdline == nil { // /proc's is whole
		p.task.Cmdline = splitCmdline(p.user.cmdline)
	}
	if len(p.user.symbols) > 0 {
		p.task.UserSymbols = NewUserSymbolTable(p.user.symbols, p.user.strings)
	}
	p.task = nil
}

func (m *LinuxMapping) mapping(text stringTable) Mapping {
	out := Mapping{LinuxMapping: *m, Path: text.at(m.Path, maxUserString)}
	if n := min(int(m.BuildIDLen), len(m.BuildID)); n > 0 {
		out.BuildID = append([]byte(nil), m.BuildID[:n]...)
	}
	return out
}

// mapName files the path of the mapping before it.
func (p *snapshotParser) mapName(it Item) {
	i := len(p.user.mappings) - 1
	if i < 0 {
		p.problem("item %#x in %s: there is no mapping before it", uint32(it.Type), p.where())
		return
	}
	if p.user.names == nil {
		p.user.names = make(map[int]string)
	}
	p.user.names[i] = cString(it.Data)
}

// userBytes files a piece of a stack: its address, then the bytes.
func (p *snapshotParser) userBytes(it Item) {
	if len(it.Data) < 8 {
		p.problem("item %#x in %s: %d bytes are no address", uint32(it.Type), p.where(), len(it.Data))
		return
	}
	p.thread.UserBytes = append(p.thread.UserBytes, UserBytes{
		Addr: binary.LittleEndian.Uint64(it.Data),
		Data: append([]byte(nil), it.Data[8:]...),
	})
}

// MappingAt returns the executable mapping that holds addr.
func (t *Task) MappingAt(addr uint64) (*Mapping, bool) { return FindMapping(t.Mappings, addr) }

// FindMapping returns the one of maps that holds addr. maps ascend and do not
// overlap, as those of a file and of /proc/PID/maps.
func FindMapping(maps []Mapping, addr uint64) (*Mapping, bool) {
	i, found := slices.BinarySearchFunc(maps, addr, func(m Mapping, a uint64) int { return cmp.Compare(m.Start, a) })
	if !found {
		i--
	}
	if i < 0 || addr >= maps[i].End {
		return nil, false
	}
	return &maps[i], true
}
