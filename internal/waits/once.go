package waits

import (
	"slices"
	"strings"

	"stackshot/kcdata"
)

// nameInitializers names who runs the initializations for which others wait. Their words do not keep it, but the
// stacks may tell. pthread_once and the like call the initialization: if one other thread of the process is in such a
// call, and does not wait there, that one runs it. A static is initialized by the function that waits for its guard:
// whoever is in that function, behind the place where it takes the guard, runs it. More than one thread that fits names
// none; and since the one that does may have come for something else, it is likely and no more.
func nameInitializers(all []*Wait) {
	found := map[onceCall][]member{}
	for _, w := range all {
		if !w.Kind.IsOnce() || len(w.Owners) > 0 {
			continue
		}
		at := onceFrame(w.Task, w.Thread)
		if at == 0 || at == len(w.Thread.User) {
			continue
		}
		by := onceCall{task: w.Task, kind: w.Kind}
		if w.Kind == StaticGuard {
			if by.begin, by.guard = placeIn(w.Task, w.Thread, at); by.begin == 0 {
				continue
			}
		}
		in, known := found[by]
		if !known {
			in = by.initializers()
			found[by] = in
		}
		if m := oneOf(in, w, at); m.thread != nil {
			w.Owners, w.Confidence = []Owner{m.owner(Holds)}, Likely
		}
	}
}

// onceCall is an initialization that a process runs: of a static by the function that begins and takes the guard there; of
// another kind any.
type onceCall struct {
	task         *kcdata.Task
	kind         Kind
	begin, guard uint64
}

// placeIn is where the function of frame i begins, and where in it the thread is; 0, 0: it has no name.
func placeIn(task *kcdata.Task, t *kcdata.Thread, i int) (begin, at uint64) {
	f := task.UserSymbols.Function(t.UserPlace(i))
	if f.Name == "" {
		return 0, 0
	}
	return t.User[i] - f.Offset, t.User[i]
}

// initializers are the threads that run it.
func (by onceCall) initializers() (out []member) {
	for _, t := range by.task.Threads {
		first := 0
		if at := onceFrame(by.task, t); at > 0 {
			first = at + 1 // who waits at a guard has those before it
		}
		for i := first; i < len(t.User); i++ {
			if by.isAt(t, i) {
				out = append(out, member{by.task, t})
				break
			}
		}
	}
	return out
}

// isAt reports whether frame i of t runs it.
func (by onceCall) isAt(t *kcdata.Thread, i int) bool {
	if by.kind == StaticGuard {
		begin, at := placeIn(by.task, t, i)
		return begin == by.begin && at > by.guard
	}
	kind, tells := userFunction(by.task.UserSymbols.Function(t.UserPlace(i)).Name)
	return tells && kind == UserOnce
}

// oneOf is who of in runs the initialization for which w's thread waits, called by its frame at: the only one but itself; or
// itself, if the function that called waits for its own call.
func oneOf(in []member, w *Wait, at int) (m member) {
	var others []member
	for _, m := range in[:min(len(in), 3)] {
		if m.thread != w.Thread {
			others = append(others, m)
		}
	}
	switch {
	case len(others) == 1:
		return others[0]
	case len(others) == 0 && len(in) == 1:
		begin, _ := placeIn(w.Task, w.Thread, at)
		for i := at + 1; i < len(w.Thread.User); i++ {
			if b, _ := placeIn(w.Task, w.Thread, i); b == begin && begin != 0 {
				return in[0]
			}
		}
	}
	return m
}

// futexCalls are functions through which others wait for a futex.
var futexCalls = newUserPatterns(Futex, "syscall futex_wait* __futex_* std::sys::*::futex::* __wait __timedwait __timedwait_cp")

// onceFrame is the place on t's user stack of the function that called for the initialization for which t
// waits; 0: it waits for none.
func onceFrame(task *kcdata.Task, t *kcdata.Thread) int {
	at := 0
	if len(t.Futexes) == 0 {
		return 0
	}
	for i := range t.User[:min(len(t.User), throughFrames)] {
		name := task.UserSymbols.Function(t.UserPlace(i)).Name
		kind, tells := userFunction(name)
		switch {
		case tells && kind.IsOnce() && !strings.Contains(name, "{closure"): // which would run the initialization
			at = i + 1
		case at > 0 || !slices.ContainsFunc(futexCalls, func(p userPattern) bool { return p.matches(name) }):
			return at
		}
	}
	return at
}
