package report

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"

	"stackshot/kcdata"
)

// Marks that flamegraph.pl colours by.
const (
	markKernel  = "_[k]"
	markInlined = "_[i]"
	markJIT     = "_[j]"
)

// noStack stands for the frames of a thread that has none.
const noStack = "[no_stack]"

// Folded writes the stacks in the form of the flame-graph tools: a line for each
// distinct stack, the process's name first, then the frames from the outermost to
// the innermost, separated by semicolons, then a space and the number of
// threads. The numbers add up to the threads that the text report would show
// with the same Options. Errors are the writer's.
func Folded(w io.Writer, s *kcdata.Snapshot, o Options) error {
	v := newView(s, o)
	f := folding{ids: map[string]uint32{}}
	counts := map[string]int{}
	for _, t := range v.threads() {
		counts[f.key(v.foldedStack(t))]++
	}
	b := bufio.NewWriter(w)
	for _, key := range slices.SortedFunc(maps.Keys(counts), f.compare) {
		f.write(b, key)
		fmt.Fprintf(b, " %d\n", counts[key])
	}
	return b.Flush() // with the first error
}

// folding numbers the names of frames: until it is written, a stack is its frames'
// numbers. Names may be long, and stacks too.
type folding struct {
	names []string
	ids   map[string]uint32
}

const foldedID = 4 // bytes of a number in a key

func (f *folding) key(frames iter.Seq[string]) string {
	var key []byte
	for name := range frames {
		id, ok := f.ids[name]
		if !ok {
			id = uint32(len(f.names))
			f.ids[name], f.names = id, append(f.names, name)
		}
		key = binary.BigEndian.AppendUint32(key, id)
	}
	return string(key)
}

func (f *folding) name(key string) string {
	return f.names[binary.BigEndian.Uint32([]byte(key[:foldedID]))]
}

// compare orders stacks by their names, the outermost first.
func (f *folding) compare(a, b string) int {
	for ; a != "" && b != ""; a, b = a[foldedID:], b[foldedID:] {
		if c := cmp.Compare(f.name(a), f.name(b)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func (f *folding) write(b *bufio.Writer, key string) {
	for first := key; key != ""; key = key[foldedID:] {
		if len(key) < len(first) {
			b.WriteByte(';')
		}
		b.WriteString(f.name(key))
	}
}

// threads are all that are shown, in the order of the report.
func (v *view) threads() []*threadView {
	var out []*threadView
	for _, t := range v.tasks {
		for _, g := range t.groups {
			out = append(out, g.threads...)
		}
	}
	return out
}

// foldedStack gives the names of a thread's line, in their order.
func (v *view) foldedStack(t *threadView) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(foldedName(t.comm())) {
			return
		}
		for _, f := range slices.Backward(t.user) {
			if !yield(f.folded()) {
				return
			}
		}
		if !t.frames {
			if len(t.user) == 0 {
				yield(noStack)
			}
			return
		}
		for _, a := range slices.Backward(t.Kernel) {
			if !yield(v.foldedKernel(a)) {
				return
			}
		}
	}
}

// comm is the process's name, not the thread's: a pool of threads that are named
// by their numbers is one tower.
func (t *threadView) comm() string {
	switch {
	case t.task.Name != "":
		return t.task.Name
	case t.Name != "":
		return t.Name
	}
	return "?"
}

func (v *view) foldedKernel(a uint64) string {
	if sym, ok := v.s.Symbols.Name(a); ok {
		return foldedName(sym.Name) + markKernel
	}
	return fmt.Sprintf("%#x", a) + markKernel
}

// folded is a user frame's name with its mark. Without a name it is the module
// with the offset in it, which is the same in every process.
func (f *userFrame) folded() string {
	name := f.Name
	if off, ok := f.fileOffset(); name == "" && ok {
		name = fmt.Sprintf("%s+%#x", f.moduleName(), off)
	} else if name == "" {
		name = fmt.Sprintf("%#x", f.addr)
	}
	name = foldedName(name)
	switch {
	case f.inlined:
		return name + markInlined
	case f.isJIT():
		return name + markJIT
	}
	return name
}

// foldedName makes a name one word without a separator. It cannot end in a mark:
// a function of user space may not pass for one of the kernel.
func foldedName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == ';':
			return ':'
		case unicode.IsSpace(r):
			return '_'
		}
		return r
	}, Clean(s))
	if n := len(s); n >= len(markKernel) && s[n-4:n-2] == "_[" && s[n-1] == ']' {
		s = s[:n-3] + "(" + s[n-2:n-1] + ")"
	}
	if s == "" {
		return "?"
	}
	return s
}
