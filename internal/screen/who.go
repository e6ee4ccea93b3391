package screen

import (
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// nameOf names a thread by its task and its number: "postgres [812] tid 814".
func nameOf(t *kcdata.Task, th *kcdata.Thread) string {
	return account.Thread(&kcdata.Task{ID: t.ID, Name: comm(t.Name)}, th.ID)
}

// nameOf names the thread of a wait, on a wide terminal by its own name too.
func (v *view) nameOf(w *waits.Wait) string {
	return nameOf(w.Task, w.Thread) + v.threadName(w.Task, w.Thread)
}

// wide is the width from which threads have their own names.
const wide = 100

// threadName follows the name of a thread: ` "checkpointer"`; "" if it has none of its own.
func (v *view) threadName(t *kcdata.Task, th *kcdata.Thread) string {
	if v.o.Width > 0 && v.o.Width < wide || t == nil || th == nil || th.Name == "" || th.Name == t.Name {
		return ""
	}
	return fmt.Sprintf(" %q", comm(th.Name))
}

// comm is a task's name. The kernel keeps 15 bytes of it, which may be escapes.
func comm(name string) string {
	const most = 24 // cells
	return show.Fit(short(name), most)
}

// examples is how many threads of a group are named.
const examples = 3

// crowd names a group of threads: "cp [7]", "40 x bash [2000] [2001] [2002]", "43 threads: bash
// [2000], cp [7], dd [9] and 40 more".
func crowd(list []*thread) string {
	if len(list) == 1 {
		return list[0].name()
	}
	first := list[0]
	if slices.ContainsFunc(list, func(t *thread) bool { return t.task.Name != first.task.Name }) {
		var names []string
		for _, t := range list[:min(len(list), examples)] {
			names = append(names, t.name())
		}
		return show.Count(len(list), "thread") + ": " + strings.Join(names, ", ") + andMore(len(list)-len(names))
	}
	s := fmt.Sprintf("%d x %s", len(list), comm(first.task.Name))
	if !slices.ContainsFunc(list, func(t *thread) bool { return t.task != first.task }) {
		return s + fmt.Sprintf(" [%d]", first.task.ID)
	}
	var seen []uint64
	for _, t := range list {
		if len(seen) < examples && !slices.Contains(seen, t.task.ID) {
			seen = append(seen, t.task.ID)
			s += fmt.Sprintf(" [%d]", t.task.ID)
		}
	}
	return s
}

// owner names an owner: a process that acts as a whole by the thread that speaks for it.
func owner(o *waits.Owner) string {
	if o.Whole && o.Task != nil {
		return comm(o.Task.Name) + fmt.Sprintf(" [%d]", o.Task.ID)
	}
	if o.Thread != nil && o.Task != nil {
		return nameOf(o.Task, o.Thread)
	}
	return verdict.Owner(o)
}

// states are one word each for what an owner does.
var states = map[model.Class]string{
	model.Blocked: "D", model.Running: "runs", model.Runnable: "waits for a CPU", model.Held: "STOPPED", model.Sleeping: "asleep",
	model.Zombie: "has ended", model.Idle: "asleep", model.Parked: "parked",
}

// ownerState is what an owner does, in brackets behind its name; "" if the file does not say, or if each
// thread of a process does something else.
func (v *view) ownerState(o *waits.Owner) string {
	why := v.words.Held(o)
	th := o.Thread
	if o.Whole && o.Task != nil && len(o.Task.Threads) == 1 {
		th = o.Task.Threads[0]
	} else if o.Whole {
		th = nil
	}
	switch {
	case o.Dead:
		return " (died with it)"
	case why != "":
		return " (" + reasons[why] + ")"
	case th == nil || states[model.StateOf(th).Class] == "":
		return ""
	}
	return " (" + states[model.StateOf(th).Class] + ")"
}

// reasons are why a culprit does not go on.
var reasons = map[waitgraph.Reason]string{
	waitgraph.Running: "runs", waitgraph.Runnable: "waits for a CPU", waitgraph.InD: "D", waitgraph.Stopped: "STOPPED",
	waitgraph.Traced: "STOPPED by its tracer", waitgraph.Frozen: "FROZEN", waitgraph.Dead: "died with the lock held", waitgraph.Asleep: "asleep",
	waitgraph.Outside: "", waitgraph.MissedCPU: "runs on a CPU that did not come to the stop",
}

// wanted says what w's thread waits for and who can end that, in few words.
func (v *view) wanted(w *waits.Wait) string {
	s := v.words.Short(w)
	if len(w.Owners) == 0 || w.File != nil && w.File.Says == waits.OwnEnd {
		return s
	}
	o := &w.Owners[0]
	if o.Thread == w.Thread && !o.Whole {
		return s + ", held by itself"
	}
	return s + ", " + verdict.Related(o.Relation) + " " + owner(o) + v.ownerState(o) + andMore(len(w.Owners)-1)
}

// at says where a thread waits: what for, and in which function.
func (v *view) at(t *thread) string {
	parts := v.waitsFor(t)
	place := v.place(t)
	parts.If(place != "" && (len(parts) == 0 || t.state.Class == model.Blocked), "in %s", place)
	return parts.Join(", ")
}

func (v *view) waitsFor(t *thread) (parts show.Parts) {
	if t.wait != nil && (verdict.Tells(t.wait) || t.wait.Kind != waits.Other) {
		parts.Add("%s", v.wanted(t.wait))
	}
	parts.Add("%s", v.placeOf(t))
	return parts
}
