package waits

import (
	"slices"
	"strings"

	"stackshot/kcdata"
)

// nameInitializers names who runs the initializations for which others wait. Their words do not keep it, but the
// stacks may tell. pthread_once and the like call the initialization: if one thread of the process is in such a
// call, and does not wait there, that one runs it. A static is initialized by the function that waits for its guard:
// whoever is in that function, behind the place where it takes the guard, runs it. More than one thread that fits names
// none; and since the one that does may have come for something else, it is likely and no more.
func nameInitializers(all []*Wait) {
	callers := map[*kcdata.Task][]member{}
	for _, w := range all {
		if !w.Kind.IsOnce() || len(w.Owners) > 0 {
			continue
		}
		var in []member
		if w.Kind == StaticGuard {
			in = initializers(w)
		} else if in = callers[w.Task]; in == nil {
			in = onceCallers(w.Task)
			callers[w.Task] = in
		}
		if others := slices.DeleteFunc(slices.Clone(in), func(m member) bool { return m.thread == w.Thread }); len(others) > 0 {
			in = others // else it waits for itself
		}
		if len(in) == 1 {
			w.Owners, w.Confidence = []Owner{in[0].owner(Holds)}, Likely
		}
	}
}

// onceCallers are the threads that run an initialization for pthread_once or the like.
func onceCallers(task *kcdata.Task) (out []member) {
	for _, t := range task.Threads {
		for i := onceFrame(task, t); i < len(t.User); i++ {
			if kind, tells := userFunction(outermost(task, t, i).Name); tells && kind == UserOnce {
				out = append(out, member{task, t})
				break
			}
		}
	}
	return out
}

// initializers are the threads in the function that called for the static for whose guard w waits, behind that call.
func initializers(w *Wait) (out []member) {
	at := onceFrame(w.Task, w.Thread)
	if at == 0 || at == len(w.Thread.User) {
		return nil
	}
	guard, f := w.Thread.User[at], outermost(w.Task, w.Thread, at)
	if f.Name == "" {
		return nil
	}
	for _, t := range w.Task.Threads {
		first := 0
		if n := onceFrame(w.Task, t); n > 0 {
			first = n + 1
		}
		for i := first; i < len(t.User); i++ {
			if g := outermost(w.Task, t, i); t.User[i] > guard && g.Name == f.Name && t.User[i]-g.Offset == guard-f.Offset {
				out = append(out, member{w.Task, t})
				break
			}
		}
	}
	return out
}

// futexCalls are functions through which others wait for a futex.
var futexCalls = newUserPatterns(Futex, "syscall futex_wait* __futex_* std::sys::*::futex::* __wait __timedwait __timedwait_cp")

// onceFrame is the place on t's user stack of the function that called for the initialization for which t
// waits; 0: it waits for none.
func onceFrame(task *kcdata.Task, t *kcdata.Thread) int {
	at := 0
	for i := range t.User {
		name := outermost(task, t, i).Name
		kind, tells := userFunction(name)
		switch {
		case tells && kind.IsOnce() && !strings.Contains(name, "{closure"): // which would run the initialization
			at = i + 1
		case at > 0 || len(t.Futexes) == 0 || !slices.ContainsFunc(futexCalls, func(p userPattern) bool { return p.matches(name) }):
			return at
		}
	}
	return at
}

// outermost is the function that frame i of t's user stack is in, and not one that was inlined there.
func outermost(task *kcdata.Task, t *kcdata.Thread, i int) kcdata.UserFunction {
	if fns := task.UserSymbols.Functions(t.UserPlace(i)); len(fns) > 0 {
		return fns[len(fns)-1]
	}
	return kcdata.UserFunction{}
}
