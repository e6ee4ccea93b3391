package screen

import (
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Options choose what a screen shows, and where.
type Options struct {
	Verdict *waitgraph.Verdict // on the snapshot; never nil
	// Width and Height of the terminal, in cells and lines. 0: no limit; who does not know the
	// height gives 24.
	Width, Height int
	Color         bool
	// File is the name of the snapshot's file, as the next commands have it; "": it has none.
	File          string
	Program       string                  // how the user starts this program to read that file, as a shell takes it; "": "stackshot"
	Only          map[*kcdata.Thread]bool // the threads that are looked at; nil: all
	Absent        []uint64                // numbers of tasks and threads that were asked for and are not in the file
	NotSymbolized []string                // files that were not symbolized, and why
}

// view is a snapshot as the sections look at it. Nothing but named and told changes after newView.
type view struct {
	s       *kcdata.Snapshot
	o       Options
	words   *verdict.Words
	threads []*thread // that are looked at, in file order; not this program's own
	tasks   []*task   // that have one of them
	of      map[*kcdata.Thread]*thread
	classes [model.ClassCount]int // threads by class
	own     int                   // threads of this program
	unasked int                   // threads that Options.Only leaves out
	// named are the threads that a section names as the trouble. Sections are made in the order
	// of the screen, and a later one does not name them again.
	named map[*kcdata.Thread]bool
	told  map[*kcdata.Thread]bool // the threads that an entry names or counts

	suspects []suspect // who kept CPUs from the stop
}

// tally marks threads that an entry counts.
func (v *view) tally(list []*thread) {
	for _, t := range list {
		v.told[t.Thread] = true
	}
}

// task is a task with the threads of it that are looked at.
type task struct {
	*kcdata.Task
	threads []*thread
}

// thread is one thread that is looked at.
type thread struct {
	*kcdata.Thread
	task  *kcdata.Task
	state model.State
	age   model.Age   // how long it had been in its state
	wait  *waits.Wait // what it waits for; nil: nothing, or not known
}

// newView looks at s once. The view keeps s.
func newView(s *kcdata.Snapshot, o Options) *view {
	v := &view{s: s, o: o, words: verdict.For(s, o.Verdict), of: make(map[*kcdata.Thread]*thread, s.ThreadCount()), named: map[*kcdata.Thread]bool{}, told: map[*kcdata.Thread]bool{}}
	clock := model.NewClock(s)
	for _, t := range s.Tasks {
		tv := &task{Task: t}
		for _, th := range t.Threads {
			switch {
			case th.IsSelf() || t.IsSelf():
				v.own++
			case o.Only != nil && !o.Only[th]:
				v.unasked++
			default:
				st := model.StateOf(th)
				x := &thread{Thread: th, task: t, state: st, age: clock.Age(th, st.Since)}
				if o.Verdict.Waits != nil {
					x.wait = o.Verdict.Waits.Of[th]
				}
				v.classes[st.Class]++
				v.of[th] = x
				tv.threads = append(tv.threads, x)
			}
		}
		if len(tv.threads) > 0 {
			v.tasks = append(v.tasks, tv)
			v.threads = append(v.threads, tv.threads...)
		}
	}
	v.suspects = v.findSuspects()
	return v
}

// name names a thread: "postgres [812]", "postgres [812] tid 814".
func (t *thread) name() string { return nameOf(t.task, t.Thread) }

// isKernel reports whether t is a kernel thread.
func (t *thread) isKernel() bool {
	return t.task.IsKernel() || t.HasLinux && t.Linux.Flags&kcdata.PFKthread != 0
}

// place is the one kernel function that says most of where t waits; "" if none is known.
func (v *view) place(t *thread) string {
	name, module := waits.Function(v.s, t.Thread)
	if module != "" {
		return short(name) + " [" + short(module) + "]"
	}
	return short(name)
}

// longestFirst orders threads by age, then by their numbers.
func longestFirst(list []*thread) {
	slices.SortStableFunc(list, func(a, b *thread) int { return model.LongestFirst(a.age, b.age) })
}

// age is how long, in few words: "3m 12s"; "?" if it is not known. Ages are upper bounds.
func age(a model.Age) string {
	if !a.Known {
		return "?"
	}
	return show.Duration(a.Ns)
}

// maxName bounds a name, in cells.
const maxName = 40

// short is a text of the machine, clean and cut.
func short(s string) string { return show.Fit(show.Clean(s[:min(len(s), 8*maxName)]), maxName) }
