package report

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// threadView is one shown thread with everything that is shown of it.
type threadView struct {
	*kcdata.Thread
	task   *kcdata.Task // that the thread is of
	state  model.State
	note   string       // why there is no kernel stack, or what kind of stack it is
	frames bool         // whether the kernel stack is worth showing
	user   []*userFrame // leaf first
	notes  []string     // what the user stack lacks
	age    model.Age    // how long the thread has been in its state
}

func (v *view) thread(task *kcdata.Task, t *kcdata.Thread, st model.State) *threadView {
	tv := &threadView{Thread: t, task: task, state: st}
	tv.note, tv.frames = v.stackNote(t, st)
	tv.user, tv.notes = v.userStack(task, t), userNotes(t)
	if len(tv.user) == maxUserFrames {
		tv.notes = append(tv.notes, fmt.Sprintf("user stack: only the innermost %d functions are shown", maxUserFrames))
	}
	tv.age = v.clock.Age(t, st.Since)
	return tv
}

// group is a set of threads that are in the same state at the same place. The embedded
// threadView is that of the first thread that was found.
type group struct {
	*threadView
	kernel  []uint64      // leaf first; nil: nothing worth showing
	mixed   []bool        // by frame: the threads are at several places in the function
	threads []*threadView // longest age first
	age     model.Age     // the longest
}

// kernelKey appends the key of a kernel stack to b. Stacks of the same functions have the
// same key.
func (v *view) kernelKey(b []byte, frames []uint64) []byte {
	for _, a := range frames {
		b = binary.LittleEndian.AppendUint32(b, v.kernelID(a))
	}
	return b
}

// kernelID numbers kernel functions. An address without a name counts as a function.
func (v *view) kernelID(a uint64) uint32 {
	return once(v.kernelIDs, a, func() uint32 {
		what := identity{kernel: true, addr: a}
		if sym, ok := v.s.Symbols.Name(a); ok {
			what = identity{kernel: true, name: sym.Name, module: sym.Module}
		}
		return v.intern(what)
	})
}

// userKey appends the key of a user stack to b.
func userKey(b []byte, frames []*userFrame) []byte {
	for _, f := range frames {
		b = binary.LittleEndian.AppendUint32(b, f.id)
	}
	return b
}

// fullKey is the same for threads of the same state, notes, and kernel and user frames by
// name.
func (v *view) fullKey(t *threadView) string {
	b := v.placeHead(t)
	b = append(b, strings.Join(t.notes, "\x00")...)
	b = append(b, 0)
	return string(userKey(b, t.user))
}

// placeHead is what fullKey begins with: state, note, and the kernel stack if it counts.
func (v *view) placeHead(t *threadView) []byte {
	b := make([]byte, 0, 128+4*len(t.Kernel)+4*len(t.user))
	b = append(b, t.state.Words...)
	b = append(b, 0)
	b = append(b, t.note...)
	b = append(b, 0)
	if t.frames {
		b = v.kernelKey(b, t.Kernel)
	}
	return append(b, 0xff, 0xff, 0xff, 0xff) // no frame's number
}

// groupThreads makes the threads of equal keys one group. The most interesting group comes
// first, among equals the largest. Within a group the thread with the greatest age comes
// first: it is the example that is named.
func groupThreads(threads []*threadView, key func(*threadView) string) []*group {
	index := map[string]*group{}
	var groups []*group
	for _, t := range threads {
		g := once(index, key(t), func() *group {
			g := &group{threadView: t}
			if t.frames {
				g.kernel, g.mixed = t.Kernel, make([]bool, len(t.Kernel))
			}
			groups = append(groups, g)
			return g
		})
		g.add(t)
	}
	for _, g := range groups {
		slices.SortStableFunc(g.threads, func(a, b *threadView) int {
			return model.LongestFirst(a.age, b.age)
		})
	}
	slices.SortStableFunc(groups, compareGroups)
	return groups
}

func (g *group) add(t *threadView) {
	g.threads = append(g.threads, t)
	if model.LongestFirst(t.age, g.age) < 0 {
		g.age = t.age
	}
	for i := range g.kernel { // the functions are the same, so the stacks have the same length
		g.mixed[i] = g.mixed[i] || g.kernel[i] != t.Kernel[i]
	}
}

func compareGroups(a, b *group) int {
	c := cmp.Compare(a.state.Class, b.state.Class)
	if c == 0 && a.state.Class <= model.Runnable {
		c = model.LongestFirst(a.age, b.age)
	}
	return cmp.Or(c, cmp.Compare(len(b.threads), len(a.threads)))
}

// numbers returns one number of each thread.
func (g *group) numbers(of func(*threadView) uint64) (out []uint64) {
	for _, t := range g.threads {
		out = append(out, of(t))
	}
	return out
}
