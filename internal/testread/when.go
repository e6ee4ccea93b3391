package testread

import (
	"fmt"
	"strings"

	"stackshot/kcdata"
)

// unlikely compares a plain buffer of ours with the words of Layout (Place.When) that say
// where an item is not, or goes with others. It names the items that contradict them.
func unlikely(plain []byte, s *kcdata.Snapshot) (out []string) {
	r, err := kcdata.NewReader(plain)
	if err != nil {
		return []string{err.Error()}
	}
	var open []*where
	for it, err := range r.Items() {
		switch {
		case err != nil:
			return append(out, err.Error())
		case it.Type == kcdata.TypeContainerBegin:
			open = append(open, &where{it.ContainerType(), it.Flags, map[kcdata.Type]bool{}})
		case it.Type == kcdata.TypeContainerEnd:
			out = append(out, open[len(open)-1].unlikely(s)...)
			open = open[:len(open)-1]
		case len(open) > 0:
			t := it.Type
			if t == kcdata.TypeArray {
				t, _, _ = it.Elem()
			}
			open[len(open)-1].has[t] = true
		}
	}
	return out[:min(len(out), maxFaults)]
}

// where is a container, and what stands in it.
type where struct {
	typ kcdata.Type
	id  uint64
	has map[kcdata.Type]bool
}

func (w *where) unlikely(s *kcdata.Snapshot) (out []string) {
	part := PartTask
	if w.typ == kcdata.TypeThread {
		part = PartThread
	}
	for _, p := range Layout {
		if p.Part != part || p.Type == kcdata.TypeThread {
			continue
		}
		may, must := w.words(p.When, s)
		if has := w.has[p.Type]; has && !may || must && !has {
			out = append(out, fmt.Sprintf("%v in %v %d: %t, and the page says %q", p.Type, w.typ, w.id, has, p.When))
		}
	}
	return out
}

// words says whether an item may be there, and whether it must.
func (w *where) words(when string, s *kcdata.Snapshot) (may, must bool) {
	exactly := func(b bool) (bool, bool) { return b, b }
	says := func(part string) bool { return strings.Contains(when, part) }
	switch {
	case when == "in a `TASK`":
		return exactly(w.typ == kcdata.TypeTask)
	case when == "in a `TRANSITIONING_TASK`":
		return exactly(w.typ == kcdata.TypeTransitioningTask)
	case when == "with `USER_STACKLR64`, unless that comes from a `LINUX_SAMPLE`":
		// A thread may have a stack of its own, and a sample that added none.
		return w.has[kcdata.TypeUserStackLR64], w.has[kcdata.TypeUserStackLR64] && !w.has[kcdata.TypeLinuxSample]
	case says("not for an idle thread") && w.id>>32 != 0,
		(says("not with engine `procfs`") || says("nor with engine `procfs`")) && s.Engine == "procfs",
		says("with `--redact`") && s.Machine.Redacted != 0:
		return false, false
	}
	return true, false
}
