package report

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Marks that flamegraph.pl colours by.
const (
	markKernel  = "_[k]" // a kernel function
	markInlined = "_[i]" // inlined into the next frame
	markJIT     = "_[j]" // named by a perf map
)

// noStack stands for the frames of a thread without a stack.
const noStack = "[no_stack]"

// leftOutStack stands for all threads that are left out because of Options.MaxBytes.
const leftOutStack = "[left_out]"

// Folded writes the stacks in the form of the flame-graph tools: a line for each
// distinct stack, the process's name first, then the frames from the outermost to
// the innermost, separated by semicolons, then a space and the number of
// threads. The numbers add up to the threads that the text report would show
// with the same Options. Errors: the writer's, *CutError.
func Folded(w io.Writer, s *kcdata.Snapshot, o Options) error {
	v := newView(s, o)
	f := newFolding(v)
	stacks := map[string]*foldedStack{}
	for _, t := range v.threads() {
		ids := f.frames(t)
		key, _ := binary.Append(nil, binary.NativeEndian, ids)
		once(stacks, string(key), func() *foldedStack { return &foldedStack{ids: ids} }).threads++
	}
	b := bufio.NewWriter(w)
	r := room{CutError: CutError{Bytes: o.MaxBytes}}
	for _, stack := range slices.SortedFunc(maps.Values(stacks), f.compare) {
		if r.full() {
			r.Threads += stack.threads
			continue
		}
		for i, id := range stack.ids {
			if i > 0 {
				b.WriteByte(';')
			}
			b.WriteString(f.names[id])
			r.used += int64(len(f.names[id])) + 1
		}
		fmt.Fprintf(b, " %d\n", stack.threads)
	}
	if r.Threads > 0 {
		fmt.Fprintf(b, "%s %d\n", leftOutStack, r.Threads)
	}
	return r.flush(b)
}

// folding gives each name of a frame a number. A stack is kept as the numbers of its
// frames until it is written: names and stacks may be long, so each name is made once.
type folding struct {
	v      *view
	names  []string
	ids    map[string]uint32 // by name
	user   map[*userFrame]uint32
	kernel map[uint64]uint32 // by address
}

func newFolding(v *view) *folding {
	return &folding{v: v, ids: map[string]uint32{}, user: map[*userFrame]uint32{}, kernel: map[uint64]uint32{}}
}

// foldedStack is one line.
type foldedStack struct {
	ids     []uint32 // the process, then the frames, the outermost first
	threads int      // that have this stack
}

// frames returns the numbers of a thread's line.
func (f *folding) frames(t *threadView) []uint32 {
	ids := make([]uint32, 0, 2+len(t.user)+len(t.Kernel))
	ids = append(ids, f.id(foldedName(t.comm())))
	for _, u := range slices.Backward(t.user) {
		ids = append(ids, once(f.user, u, func() uint32 { return f.id(u.folded()) }))
	}
	switch {
	case t.frames:
		for _, a := range slices.Backward(t.Kernel) {
			ids = append(ids, once(f.kernel, a, func() uint32 { return f.id(foldedName(f.v.kernelName(a)) + markKernel) }))
		}
	case len(t.user) == 0:
		ids = append(ids, f.id(noStack))
	}
	return ids
}

// id returns the number of a name.
func (f *folding) id(name string) uint32 {
	return once(f.ids, name, func() uint32 {
		f.names = append(f.names, name)
		return uint32(len(f.names) - 1)
	})
}

// once returns m[k], and makes it first if m does not have it.
func once[K comparable, V any](m map[K]V, k K, value func() V) V {
	v, ok := m[k]
	if !ok {
		v = value()
		m[k] = v
	}
	return v
}

// compare orders stacks by their names, the outermost first.
func (f *folding) compare(a, b *foldedStack) int {
	return slices.CompareFunc(a.ids, b.ids, func(x, y uint32) int { return strings.Compare(f.names[x], f.names[y]) })
}

// threads returns all threads that are shown, in the order of the report.
func (v *view) threads() (out []*threadView) {
	for _, t := range v.tasks {
		out = append(out, t.threadViews()...)
	}
	return out
}

// threadViews returns the threads of a task, group by group.
func (t *taskView) threadViews() (out []*threadView) {
	for _, g := range t.groups {
		out = append(out, g.threads...)
	}
	return out
}

// comm is the name of the process, not of the thread. So a pool of threads that are named
// by their numbers is one tower of the flame graph.
func (t *threadView) comm() string { return cmp.Or(t.task.Name, t.Name, "?") }

// folded is a user frame's name with its mark. A frame without a name is called by its
// module and the offset in it, which are the same in every process.
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
	case f.Module == "[jit]": // the name is from a perf map
		return name + markJIT
	}
	return name
}

// foldedName makes a name one word without a separator. The word does not end like a
// mark: otherwise a function of user space could look like one of the kernel.
func foldedName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == ';':
			return ':'
		case unicode.IsSpace(r):
			return '_'
		}
		return r
	}, show.Clean(s))
	if n := len(s); n >= len(markKernel) && s[n-4:n-2] == "_[" && s[n-1] == ']' {
		s = s[:n-3] + "(" + s[n-2:n-1] + ")"
	}
	if s == "" {
		return "?"
	}
	return s
}
