package report

import (
	"bufio"
	"fmt"
	"io"
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
	counts := map[string]int{}
	for _, t := range v.threads() {
		counts[v.foldedStack(t)]++
	}
	b := bufio.NewWriter(w)
	for _, stack := range slices.Sorted(maps.Keys(counts)) {
		if _, err := fmt.Fprintf(b, "%s %d\n", stack, counts[stack]); err != nil {
			return err
		}
	}
	return b.Flush()
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

// foldedStack is a thread's line without the number.
func (v *view) foldedStack(t *threadView) string {
	parts := []string{foldedName(t.comm())}
	for _, f := range slices.Backward(t.user) {
		parts = append(parts, f.folded())
	}
	if t.frames {
		for _, a := range slices.Backward(t.Kernel) {
			parts = append(parts, v.foldedKernel(a))
		}
	}
	if len(parts) == 1 {
		parts = append(parts, noStack)
	}
	return strings.Join(parts, ";")
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
