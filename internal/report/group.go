package report

import (
	"cmp"
	"slices"

	"stackshot/kcdata"
)

// threadView is one shown thread with everything the grouping asks of it.
type threadView struct {
	*kcdata.Thread
	task   *kcdata.Task
	state  state
	note   string // why there is no stack, or what kind of stack it is
	frames bool   // whether the stack is worth showing
	age    uint64 // ns, at most; counts if hasAge
	hasAge bool
}

func (v *view) thread(task *kcdata.Task, t *kcdata.Thread, st state) *threadView {
	tv := &threadView{Thread: t, task: task, state: st}
	tv.note, tv.frames = v.stackNote(t, st)
	tv.age, tv.hasAge = v.clock.Age(t, st.since)
	return tv
}

// group is a set of threads that are in the same state at the same place.
type group struct {
	class   class
	words   string
	note    string
	frames  []uint64 // nil: nothing worth showing
	threads []*threadView
	age     uint64 // the longest of the threads'
	hasAge  bool
}

// key makes two threads one group: state in words, note and every frame.
func (t *threadView) key() string {
	b := make([]byte, 0, 64+8*len(t.Kernel))
	b = append(b, t.state.words...)
	b = append(b, 0)
	b = append(b, t.note...)
	b = append(b, 0)
	if t.frames {
		b = append(b, stackKey(t.Kernel)...)
	}
	return string(b)
}

// groupThreads groups by key; most interesting first, the largest first among
// equals. Within a group the thread with the greatest age comes first: it is
// the example.
func groupThreads(threads []*threadView) []*group {
	index := map[string]*group{}
	var groups []*group
	for _, t := range threads {
		k := t.key()
		g := index[k]
		if g == nil {
			g = &group{class: t.state.class, words: t.state.words, note: t.note}
			if t.frames {
				g.frames = t.Kernel
			}
			index[k] = g
			groups = append(groups, g)
		}
		g.add(t)
	}
	for _, g := range groups {
		slices.SortStableFunc(g.threads, func(a, b *threadView) int {
			return compareAges(a.ageOf, b.ageOf)
		})
	}
	slices.SortStableFunc(groups, compareGroups)
	return groups
}

func (g *group) add(t *threadView) {
	g.threads = append(g.threads, t)
	if t.hasAge && (!g.hasAge || t.age > g.age) {
		g.age, g.hasAge = t.age, true
	}
}

func (t *threadView) ageOf() (uint64, bool) { return t.age, t.hasAge }
func (g *group) ageOf() (uint64, bool)      { return g.age, g.hasAge }

func compareGroups(a, b *group) int {
	if c := cmp.Compare(a.class, b.class); c != 0 {
		return c
	}
	if a.class <= classRunnable {
		if c := compareAges(a.ageOf, b.ageOf); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(b.threads), len(a.threads))
}

// ids returns the threads' container ids.
func (g *group) ids() []uint64 {
	ids := make([]uint64, len(g.threads))
	for i, t := range g.threads {
		ids[i] = t.ID
	}
	return ids
}
