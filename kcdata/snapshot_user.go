package kcdata

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
)

// Mapping is one executable mapping of a task, with its names.
type Mapping struct {
	LinuxMapping
	Path    string // "" if it has no file
	BuildID []byte // nil: not known
}

// UserBytes is a piece of a thread's stack.
type UserBytes struct {
	Addr uint64
	Data []byte
}

// Append appends the piece to b in the form of LINUX_USER_BYTES.
func (u UserBytes) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, u.Addr)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(u.Data)))
	return append(b, u.Data...)
}

// UserFunction is one function that a user address is in.
type UserFunction struct {
	Name   string
	Module string // path of the file, "[jit]", "[vdso]"; "": not known
	Offset uint64 // from the function's start
	File   string // source file; "": not known
	Line   uint32 // 0: not known
}

// UserPlace is an address in a user stack together with its meaning. The same number may be
// the instruction at which one thread stood, and the return address of another thread: then
// it lies behind the last call of the function before.
type UserPlace struct {
	Addr  uint64
	Exact bool // it means the instruction at Addr; otherwise the call before it
}

// Compare orders places as a file orders their records.
func (p UserPlace) Compare(q UserPlace) int {
	return cmp.Or(cmp.Compare(p.Addr, q.Addr), cmp.Compare(p.Flag(), q.Flag()))
}

// Flag is the LinuxUserSymbol.Flags of the records for p.
func (p UserPlace) Flag() uint32 {
	if p.Exact {
		return UserSymbolExact
	}
	return UserSymbolReturn
}

// UserPlace is the place of t.User[i]. The leaf, where the thread was, and an address that a
// signal interrupted mean an instruction; all others are return addresses.
func (t *Thread) UserPlace(i int) UserPlace {
	exact := i == 0
	if i < len(t.UserHow) {
		exact = t.UserHow[i] == UserFrameRegs || t.UserHow[i] == UserFrameSignal
	}
	return UserPlace{t.User[i], exact}
}

// UserSymbolTable names the places of one task's user stacks. Nothing changes it after
// NewUserSymbolTable. A nil table names no place.
type UserSymbolTable struct {
	funcs   map[userKey][]UserFunction
	most    int // functions of one place
	dropped int // functions that were left out because their place had maxInlined already
}

type userKey struct {
	addr uint64
	kind uint32 // a UserSymbol*; 0: of either
}

func keyOf(r *LinuxUserSymbol) userKey {
	kind := r.Flags & (UserSymbolExact | UserSymbolReturn)
	if kind == UserSymbolExact|UserSymbolReturn {
		kind = 0
	}
	return userKey{r.Addr, kind}
}

// NewUserSymbolTable makes the table of a task's records; strs is the string table that
// their names are in. The records of one place keep their order, innermost function first.
// It leaves out a record with neither a function nor a module, and those of a place that
// follow the first maxInlined.
func NewUserSymbolTable[S ~string | ~[]byte](records []LinuxUserSymbol, strs S) *UserSymbolTable {
	text := stringTable(strs)
	t := &UserSymbolTable{funcs: make(map[userKey][]UserFunction, len(records))}
	for i := range records {
		r := &records[i]
		f := UserFunction{
			Name: text.at(r.Name, maxUserString), Module: text.at(r.Module, maxUserString),
			Offset: r.Offset, File: text.at(r.File, maxUserString), Line: r.Line,
		}
		key := keyOf(r)
		switch {
		case f.Name == "" && f.Module == "":
		case len(t.funcs[key]) == maxInlined:
			t.dropped++
		default:
			t.funcs[key] = append(t.funcs[key], f)
			t.most = max(t.most, len(t.funcs[key]))
		}
	}
	return t
}

// Functions returns the functions that p is in, innermost first; nil if the file has no
// name for p.
func (t *UserSymbolTable) Functions(p UserPlace) []UserFunction {
	if t == nil {
		return nil
	}
	if funcs := t.funcs[userKey{p.Addr, p.Flag()}]; funcs != nil {
		return funcs
	}
	return t.funcs[userKey{p.Addr, 0}]
}

// Function returns the function that p is in, and not one that was inlined there; zero if the file
// has no name for p.
func (t *UserSymbolTable) Function(p UserPlace) (f UserFunction) {
	if all := t.Functions(p); len(all) > 0 {
		f = all[len(all)-1]
	}
	return f
}

// Len returns the number of places that have a name.
func (t *UserSymbolTable) Len() int {
	if t == nil {
		return 0
	}
	return len(t.funcs)
}

// maxUserString is how many bytes of one string of a task's table are read. C++ names may be
// as long as a path.
const maxUserString = 4096

// UserBytes gives the pieces of stack in a LINUX_USER_BYTES item, as parts of its Data, up to
// the first that is not whole. With each comes the number of bytes behind it, which is 0 for
// the last piece. The plain item of an old file is one piece without a length.
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

// MappingAt returns the executable mapping that holds addr; ok is false if there is none.
func (t *Task) MappingAt(addr uint64) (m *Mapping, ok bool) { return FindMapping(t.Mappings, addr) }

// FindMapping returns the mapping in maps that holds addr; ok is false if there is none. maps
// must be in ascending order and must not overlap, like those of a file and of
// /proc/PID/maps.
func FindMapping(maps []Mapping, addr uint64) (m *Mapping, ok bool) {
	i, found := slices.BinarySearchFunc(maps, addr, func(m Mapping, a uint64) int { return cmp.Compare(m.Start, a) })
	if !found {
		i--
	}
	if i < 0 || addr >= maps[i].End {
		return nil, false
	}
	return &maps[i], true
}
