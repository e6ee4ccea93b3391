package testread

import (
	"fmt"

	"stackshot/kcdata"
)

// misplaced names the items of a plain buffer, at most 20, that Layout does not have
// where they stand, and those that it always has and that are not there. Errors: those
// of NewReader and Items.
func misplaced(plain []byte) ([]string, error) {
	r, err := kcdata.NewReader(plain)
	if err != nil {
		return nil, err
	}
	w := placer{part: []Part{PartBefore}, at: []int{0}, seen: []map[int]bool{{}}}
	for it, err := range r.Items() {
		if err != nil {
			return nil, err
		}
		if why := w.item(it); why != "" && len(w.out) < maxMisplaced {
			w.out = append(w.out, fmt.Sprintf("%v at %#x: %s", kindOf(it), it.Offset, why))
		}
	}
	w.close(PartBefore)
	w.close(PartAfter)
	return w.out, nil
}

// close names what always stands in a part and was not there.
func (w *placer) close(part Part) {
	seen := w.seen[len(w.seen)-1]
	for i, p := range Layout {
		if p.Part == part && p.When == "" && !seen[i] && len(w.out) < maxMisplaced {
			w.out = append(w.out, fmt.Sprintf("%v %s is not there, %s", p.Type, p.Desc, part))
		}
	}
}

// maxMisplaced is how many items misplaced names.
const maxMisplaced = 20

// placer is where the walk is: for each open container the part, the last place and
// the places that were met.
type placer struct {
	part []Part
	at   []int
	seen []map[int]bool
	out  []string
}

// kindOf is what an item is of, whatever its form.
func kindOf(it kcdata.Item) kcdata.Type {
	t, _, _ := it.Elem()
	switch {
	case it.Type == kcdata.TypeArray:
		return t
	case it.Type == kcdata.TypeContainerBegin:
		return it.ContainerType()
	}
	return it.Type
}

func (w *placer) item(it kcdata.Item) string {
	top := len(w.part) - 1
	t := kindOf(it)
	switch {
	case it.Type == kcdata.TypeContainerEnd:
		w.close(w.part[top])
		w.part, w.at, w.seen = w.part[:top], w.at[:top], w.seen[:top]
		return ""
	case top == 0 && (t == kcdata.TypeTask || t == kcdata.TypeTransitioningTask):
		w.open(PartTask)
		return ""
	}
	name, _, _ := it.Desc()
	if top == 0 && w.part[0] == PartBefore && name == "stackshot_tasks_count" {
		w.part[0] = PartAfter
	}
	part := w.part[top]
	if it.Type == kcdata.TypeContainerBegin {
		w.open(PartThread)
	}
	why := "not known as of: " + string(part)
	for i, p := range Layout {
		if p.Part != part || p.Type != t || p.Desc != name {
			continue
		}
		s, _ := kcdata.Lookup(t)
		switch {
		case (it.Type == kcdata.TypeArray) != (p.Array || s.Bytewise):
			why = "in another form"
		case w.seen[top][i] && !p.Many:
			why = "a second time"
		case i < w.at[top] && !p.Loose:
			why = "behind " + Layout[w.at[top]].Type.String()
		default:
			w.seen[top][i] = true
			if !p.Loose {
				w.at[top] = i
			}
			return ""
		}
	}
	return why
}

func (w *placer) open(p Part) {
	w.part, w.at, w.seen = append(w.part, p), append(w.at, 0), append(w.seen, map[int]bool{})
}
