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
	markKernel  = "_[k]"
	markInlined = "_[i]"
	markJIT     = "_[j]"
)

// noStack stands for the frames of a thread that has none.
const noStack = "[no_stack]"

// leftOutStack stands for all threads behind Options.MaxBytes.
const leftOutStack = "[left_out]"

// Folded writes the stacks in the form of the flame-graph tools: a line for each
// distinct stack, the process's name first, then the frames from the outermost to
// the innermost, separated by semicolons, then a space and the number of
// threads. The numbers add up to the threads that the text report would show
// with the same Options. Errors are the writer's.
func Folded(w io.Writer, s *kcdata.Snapshot, o Options) error {
	v := newView(s, o)
	f := newFolding(v)
	counts := map[string]int{}
	for _, t := range v.threads() {
		counts[f.key(t)]++
	}
	b := bufio.NewWriter(w)
	r := room{CutError: CutError{Bytes: o.MaxBytes}}
	for _, key := range slices.SortedFunc(maps.Keys(counts), f.compare) {
		if r.full() {
			r.Threads += counts[key]
			continue
		}
		r.used += f.write(b, key)
		fmt.Fprintf(b, " %d\n", counts[key])
	}
	if r.Threads > 0 {
		fmt.Fprintf(b, "%s %d\n", leftOutStack, r.Threads)
	}
	return r.flush(b)
}

// folding numbers the names of frames: until it is written, a stack is its frames'
// numbers. Names may be long, and stacks too; each is made once.
type folding struct {
	v      *view
	names  []string
	ids    map[string]uint32
	user   map[*userFrame]uint32
	kernel map[uint64]uint32
}

func newFolding(v *view) *folding {
	return &folding{v: v, ids: map[string]uint32{}, user: map[*userFrame]uint32{}, kernel: map[uint64]uint32{}}
}

const foldedID = 4 // bytes of a number in a key

// key is a thread's line: the process, then the frames, the outermost first.
func (f *folding) key(t *threadView) string {
	key := make([]byte, 0, foldedID*(2+len(t.user)+len(t.Kernel)))
	add := func(id uint32) { key = binary.BigEndian.AppendUint32(key, id) }
	add(f.id(foldedName(t.comm())))
	for _, u := range slices.Backward(t.user) {
		add(once(f.user, u, func() uint32 { return f.id(u.folded()) }))
	}
	switch {
	case t.frames:
		for _, a := range slices.Backward(t.Kernel) {
			add(once(f.kernel, a, func() uint32 { return f.id(f.v.foldedKernel(a)) }))
		}
	case len(t.user) == 0:
		add(f.id(noStack))
	}
	return string(key)
}

func (f *folding) id(name string) uint32 {
	return once(f.ids, name, func() uint32 {
		f.names = append(f.names, name)
		return uint32(len(f.names) - 1)
	})
}

// once is what m has of k, made if it has nothing.
func once[K comparable, V any](m map[K]V, k K, value func() V) V {
	v, ok := m[k]
	if !ok {
		v = value()
		m[k] = v
	}
	return v
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

func (f *folding) write(b *bufio.Writer, key string) (n int64) {
	for first := key; key != ""; key = key[foldedID:] {
		if len(key) < len(first) {
			b.WriteByte(';')
		}
		b.WriteString(f.name(key))
		n += int64(len(f.name(key))) + 1
	}
	return n
}

// threads are all that are shown, in the order of the report.
func (v *view) threads() []*threadView {
	var out []*threadView
	for _, t := range v.tasks {
		out = append(out, t.threadViews()...)
	}
	return out
}

// threadViews are those of a task, group by group.
func (t *taskView) threadViews() (out []*threadView) {
	for _, g := range t.groups {
		out = append(out, g.threads...)
	}
	return out
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

func (v *view) foldedKernel(a uint64) string { return foldedName(v.kernelName(a)) + markKernel }

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
	}, show.Clean(s))
	if n := len(s); n >= len(markKernel) && s[n-4:n-2] == "_[" && s[n-1] == ']' {
		s = s[:n-3] + "(" + s[n-2:n-1] + ")"
	}
	if s == "" {
		return "?"
	}
	return s
}
