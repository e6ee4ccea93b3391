package kcdata

import (
	"cmp"
	"encoding/binary"
	"iter"
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

// Append adds the piece as a LINUX_USER_BYTES holds it.
func (u UserBytes) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, u.Addr)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(u.Data)))
	return append(b, u.Data...)
}

// UserFunction is one function that a user address is in.
type UserFunction struct {
	Name   string
	Module string // path of the file, "[jit]", "[vdso]"; "" not known
	Offset uint64 // from the function's start
	File   string // source file; "" not known
	Line   uint32 // 0: not known
}

// UserPlace is what an address of a user stack stands for: the same number may be
// where one thread stood and where another returns to, behind the last call of the
// function before.
type UserPlace struct {
	Addr  uint64
	Exact bool // the instruction itself; else the call before it
}

// Compare orders places as a file has their records.
func (p UserPlace) Compare(q UserPlace) int {
	return cmp.Or(cmp.Compare(p.Addr, q.Addr), cmp.Compare(p.Flag(), q.Flag()))
}

// Flag is the LinuxUserSymbol.Flags of the place's records.
func (p UserPlace) Flag() uint32 {
	if p.Exact {
		return UserSymbolExact
	}
	return UserSymbolReturn
}

// UserPlace is the i-th of t.User: where a thread was, and what a signal interrupted,
// are instructions; all others are return addresses.
func (t *Thread) UserPlace(i int) UserPlace {
	exact := i == 0
	if i < len(t.UserHow) {
		exact = t.UserHow[i] == UserFrameRegs || t.UserHow[i] == UserFrameSignal
	}
	return UserPlace{t.User[i], exact}
}

// UserSymbolTable names places of one task's user stacks. It is constant after it
// was made.
type UserSymbolTable struct {
	keys    []userKey // ascending
	funcs   [][]UserFunction
	most    int // functions of one place
	dropped int // functions beyond maxInlined of one place
}

type userKey struct {
	addr uint64
	kind uint32 // a UserSymbol*; 0: of either
}

func (k userKey) compare(o userKey) int {
	return cmp.Or(cmp.Compare(k.addr, o.addr), cmp.Compare(k.kind, o.kind))
}

func keyOf(r *LinuxUserSymbol) userKey {
	kind := r.Flags & (UserSymbolExact | UserSymbolReturn)
	if kind == UserSymbolExact|UserSymbolReturn {
		kind = 0
	}
	return userKey{r.Addr, kind}
}

// NewUserSymbolTable builds the table of a task's records over its string table.
// The records of one place keep their order, innermost function first; one
// without a name is left out unless it names a module, and so is one behind the
// first maxInlined of its place.
func NewUserSymbolTable(records []LinuxUserSymbol, strs []byte) *UserSymbolTable {
	return newUserSymbolTable(records, stringTable(strs))
}

func newUserSymbolTable(records []LinuxUserSymbol, text stringTable) *UserSymbolTable {
	sorted := slices.Clone(records)
	slices.SortStableFunc(sorted, func(a, b LinuxUserSymbol) int { return keyOf(&a).compare(keyOf(&b)) })
	t := &UserSymbolTable{}
	for _, r := range sorted {
		f := UserFunction{
			Name: text.at(r.Name, maxUserString), Module: text.at(r.Module, maxUserString),
			Offset: r.Offset, File: text.at(r.File, maxUserString), Line: r.Line,
		}
		if f.Name == "" && f.Module == "" {
			continue
		}
		if n := len(t.keys); n == 0 || t.keys[n-1] != keyOf(&r) {
			t.keys, t.funcs = append(t.keys, keyOf(&r)), append(t.funcs, nil)
		}
		last := &t.funcs[len(t.funcs)-1]
		if len(*last) == maxInlined {
			t.dropped++
			continue
		}
		*last = append(*last, f)
		t.most = max(t.most, len(*last))
	}
	return t
}

// Functions returns the functions that p is in, innermost first; nil if it is not
// known. A nil table knows nothing.
func (t *UserSymbolTable) Functions(p UserPlace) []UserFunction {
	if t == nil {
		return nil
	}
	for _, kind := range [...]uint32{p.Flag(), 0} {
		if i, ok := slices.BinarySearchFunc(t.keys, userKey{p.Addr, kind}, userKey.compare); ok {
			return t.funcs[i]
		}
	}
	return nil
}

// Len returns the number of places that the table names.
func (t *UserSymbolTable) Len() int {
	if t == nil {
		return 0
	}
	return len(t.keys)
}

// maxUserString bounds one string of a task's table. C++ has long names: it may be
// as long as a path.
const maxUserString = 4096

// UserBytes are the pieces of stack in a LINUX_USER_BYTES item, within its Data: as
// many as are whole, each with the number of bytes behind it, which is 0 at the end.
// The plain item of old files is one piece that says no length.
func (it Item) UserBytes() iter.Seq2[UserBytes, int] {
	head, lengths := 8, it.Type == TypeArray
	if lengths {
		head = 16
	}
	return func(yield func(UserBytes, int) bool) {
		for b := it.Data; len(b) >= head; {
			addr, n := binary.LittleEndian.Uint64(b), uint64(len(b)-head)
			if lengths {
				n = binary.LittleEndian.Uint64(b[8:])
			}
			if b = b[head:]; n > uint64(len(b)) || !yield(UserBytes{addr, b[:n:n]}, len(b)-int(n)) {
				return
			}
			b = b[n:]
		}
	}
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
