package waits

import "stackshot/kcdata"

// nameInitializers names who runs the initializations for which others wait. Their words do not keep it, but the
// stacks tell: who waits and who initializes came through the same function, which called for it. Whoever is in
// that function for something else looks the same, so the owner is likely and no more; and none is named
// unless one thread of the process fits.
func nameInitializers(all []*Wait) {
	found := map[caller][]member{}
	for _, w := range all {
		if !isOnce(w.Kind) || len(w.Owners) > 0 {
			continue
		}
		at := waitsOnce(w.Task, w.Thread)
		if at == 0 || at == len(w.Thread.User) {
			continue
		}
		by := caller{w.Task, outermost(w.Task, w.Thread, at), w.Kind == UserOnce}
		if _, known := found[by]; !known && by.function.name != "" {
			found[by] = by.initializers()
		}
		if in := found[by]; len(in) == 1 {
			w.Owners, w.Confidence = []Owner{in[0].owner(Holds)}, Likely
		}
	}
}

type function struct{ name, module string }

// caller is a function that has something initialized once.
type caller struct {
	task     *kcdata.Task
	function function
	through  bool // through pthread_once or the like, which calls the initialization; a static is initialized by the function itself
}

// initializers are the threads that run an initialization for which by called. A thread may wait for itself.
func (by caller) initializers() (out []member) {
	for _, t := range by.task.Threads {
		first := 0
		if at := waitsOnce(by.task, t); at > 0 {
			first = at + 1
		}
		for i := first; i < len(t.User); i++ {
			if outermost(by.task, t, i) == by.function && (!by.through || i > 0 && callsOnce(by.task, t, i-1)) {
				out = append(out, member{by.task, t})
				break
			}
		}
	}
	return out
}

// onceFrames is among how many frames, from the leaf on, the function that waits for an initialization is: others may
// run it.
const onceFrames = 3

// waitsOnce is the place on t's user stack of the function that called for the initialization for which t
// waits; 0: it waits for none.
func waitsOnce(task *kcdata.Task, t *kcdata.Thread) int {
	at := 0
	if len(t.Futexes) == 0 {
		return 0
	}
	for i := range t.User {
		switch {
		case callsOnce(task, t, i):
			at = i + 1
		case at > 0 || i == onceFrames:
			return at
		}
	}
	return at
}

func isOnce(k Kind) bool { return k == UserOnce || k == StaticGuard }

// callsOnce reports whether frame i of t's user stack is in a function that runs an initialization once, or waits for it.
func callsOnce(task *kcdata.Task, t *kcdata.Thread, i int) bool {
	kind, tells := userFunction(outermost(task, t, i).name)
	return tells && isOnce(kind)
}

// outermost is the function that frame i of t's user stack is in, and not one that was inlined there.
func outermost(task *kcdata.Task, t *kcdata.Thread, i int) function {
	if fns := task.UserSymbols.Functions(t.UserPlace(i)); len(fns) > 0 {
		f := fns[len(fns)-1]
		return function{f.Name, f.Module}
	}
	return function{}
}
