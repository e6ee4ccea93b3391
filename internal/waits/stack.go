package waits

import (
	"math/bits"
	"strings"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// row is one line of the table: a stack is of the row's kind if its leaf has a name of leaf,
// and any of its frames one of within. Names stand in a string, with spaces between; one that
// ends in "*" is the begin of a name, and "sys_x" is a system call on every machine. An empty
// string matches every stack.
type row struct {
	kind         Kind
	leaf, within string
}

// set is a set of rows, by their place in the table.
type set [(maxRows + 63) / 64]uint64

const maxRows = 128

func (s *set) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s set) or(t set) set {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

// marks are the rows whose pattern of leaf or within a function's name matches.
type marks struct {
	leaf, within set
	helper       bool // tells nothing as the leaf: its caller waits
}

// patterns are the names of one column of the table.
type patterns struct {
	exact map[string]set
	begin map[byte][]prefix // by the first byte
	every set               // rows without a pattern
}

type prefix struct {
	text string
	rows set
}

// compiled is the table by names. Nothing changes it.
var compiled = struct{ leaf, within, helpers *patterns }{
	compile(func(r row) string { return r.leaf }),
	compile(func(r row) string { return r.within }),
	newPatterns().put(0, helpers),
}

func newPatterns() *patterns { return &patterns{exact: map[string]set{}, begin: map[byte][]prefix{}} }

func compile(column func(row) string) *patterns {
	p := newPatterns()
	for i, r := range table {
		p.put(i, column(r))
	}
	return p
}

// put adds the names in text for row i.
func (p *patterns) put(i int, text string) *patterns {
	names := strings.Fields(text)
	if len(names) == 0 {
		p.every.add(i)
	}
	for _, name := range names {
		begin, open := strings.CutSuffix(name, "*")
		if !open {
			s := p.exact[name]
			s.add(i)
			p.exact[name] = s
			continue
		}
		var s set
		s.add(i)
		p.begin[begin[0]] = append(p.begin[begin[0]], prefix{begin, s})
	}
	return p
}

// of returns the rows with a name that matches.
func (p *patterns) of(name string) set {
	rows := p.exact[name]
	if name == "" {
		return rows
	}
	for _, b := range p.begin[name[0]] {
		if strings.HasPrefix(name, b.text) {
			rows = rows.or(b.rows)
		}
	}
	return rows
}

// entries are what the machines put before a system call's name.
var entries = []string{"__x64_sys_", "__arm64_sys_", "__ia32_sys_", "__ia32_compat_sys_", "__arm64_compat_sys_", "__se_sys_", "__do_sys_", "__do_compat_sys_"}

// plain is name as the table has it: without what the compiler put behind it (.constprop.0,
// .isra.0, .part.0), and a system call without its machine.
func plain(name string) string {
	name, _, _ = strings.Cut(name, ".")
	if strings.HasPrefix(name, "__") {
		for _, e := range entries {
			if call, ok := strings.CutPrefix(name, e); ok {
				return "sys_" + call
			}
		}
	}
	return name
}

func marksOf(name string) *marks {
	name = plain(name)
	return &marks{compiled.leaf.of(name), compiled.within.of(name), compiled.helpers.of(name) != set{}}
}

// IsHelper reports whether a kernel function waits for whoever calls it, so that its name tells
// nothing of what is waited for.
func IsHelper(name string) bool { return compiled.helpers.of(plain(name)) != set{} }

// noMarks are those of an address without a name.
var noMarks = &marks{}

// namesOf are the marks of t's kernel stack, leaf first, without the scheduler's frames; of
// engine procfs the place in which it sleeps may be all there is. Empty: there is no stack.
func (f *finder) namesOf(t *kcdata.Thread) []*marks {
	if len(t.Kernel) == 0 {
		if t.Wchan == "" || t.Wchan == "0" {
			return nil
		}
		return []*marks{marksOf(t.Wchan)}
	}
	frames := model.SkipSleep(f.s.Symbols, t.Kernel)
	out := make([]*marks, 0, len(frames))
	for _, addr := range frames {
		m := f.marks[addr]
		if m == nil {
			m = noMarks
			if sym, ok := f.s.Symbols.Name(addr); ok {
				m = marksOf(sym.Name)
			}
			f.marks[addr] = m
		}
		if len(out) > 0 || !m.helper {
			out = append(out, m)
		}
	}
	return out
}

// Function is the first function on t's kernel stack that does not wait for its caller, with its
// module; "": none is known.
func Function(s *kcdata.Snapshot, t *kcdata.Thread) (name, module string) {
	if len(t.Kernel) == 0 && t.Wchan != "0" {
		return t.Wchan, ""
	}
	for _, addr := range model.SkipSleep(s.Symbols, t.Kernel) {
		if sym, ok := s.Symbols.Name(addr); ok && !IsHelper(sym.Name) {
			return sym.Name, sym.Module
		}
	}
	return "", ""
}

// match is the kind of a stack; ok is false if no row knows it.
func match(names []*marks) (kind Kind, ok bool) {
	if i := rowOf(names); i >= 0 {
		return table[i].kind, true
	}
	return Other, false
}

// rowOf is the place of the first row that the stack is of; -1 if there is none.
func rowOf(names []*marks) int {
	if len(names) == 0 {
		return -1
	}
	within := compiled.within.every
	for _, m := range names {
		within = within.or(m.within)
	}
	leaf := compiled.leaf.every.or(names[0].leaf)
	for i := range leaf {
		if both := leaf[i] & within[i]; both != 0 {
			return i*64 + bits.TrailingZeros64(both)
		}
	}
	return -1
}
