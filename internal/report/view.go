package report

import (
	"cmp"
	"slices"

	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/kcdata"
)

// Options choose what is shown.
type Options struct {
	// Only are the threads that are asked for; nil: all.
	Only map[*kcdata.Thread]bool
	// Absent are the numbers of tasks and threads that were asked for and are not in the file.
	Absent []uint64
	// ShowSelf shows the snapshotter's own threads too.
	ShowSelf bool
	// ShowIdle shows idle kernel threads and the CPUs' idle threads one by
	// one. Those in Only always are.
	ShowIdle bool

	// Verdict is what hangs, and what each thread waits for. nil: it was not asked for, and
	// nothing of it is shown. Only Text and JSON show it.
	Verdict *waitgraph.Verdict

	// NotSymbolized says which files were not symbolized, and why.
	NotSymbolized []string

	// MaxBytes limits the report: it ends at most one thread and some lines later. The
	// threads that are not shown are then counted, and the error is a *CutError. Pprof
	// ignores it: a profile holds each name once. 0: no limit.
	MaxBytes int64

	// The fields below are for Text only.

	// Width of the terminal, in cells. Longer lines are wrapped. 0: no limit.
	Width int
	// GroupBy sorts the threads into sections and groups. "": ByState.
	GroupBy Grouping
	// SortBy orders what stands in a section. "": most interesting first.
	SortBy Order
	// Color marks headings and alarms with ANSI colours.
	Color bool
	// File is the name of the snapshot's file, for the commands that Text proposes; "": none.
	File string
	// Program is how the user starts this program to read that file (screen.Options).
	Program string
}

// Counts account for every thread of a snapshot (R1):
// Threads = Shown + FoldedKernel + FoldedCPUIdle + HiddenSelf + NotAsked.
type Counts struct {
	Tasks         int `json:"tasks"`
	Threads       int `json:"threads"`
	TasksShown    int `json:"tasks_shown"`
	Shown         int `json:"threads_shown"`
	FoldedKernel  int `json:"threads_folded_idle_kernel"`
	FoldedCPUIdle int `json:"threads_folded_cpu_idle"`
	HiddenSelf    int `json:"threads_hidden_self"`
	NotAsked      int `json:"threads_not_asked"`
}

// view is a snapshot sorted for showing. Constant after newView, but for the caches below.
type view struct {
	s       *kcdata.Snapshot
	o       Options
	stopped map[uint64]bool // CPUs that were held
	clock   *model.Clock    // gives the ages of states
	tasks   []*taskView     // those that are shown
	folded  map[string]int  // idle kernel threads by family
	counts  Counts
	classes [model.ClassCount]int // shown threads
	// printed maps a stack to where the text last showed it. Only stackText writes it.
	printed map[string]printed
	// Caches of what equal frames share. Only intern, framesAt and kernelID write them.
	ids       map[identity]uint32
	places    map[place][]*userFrame
	kernelIDs map[uint64]uint32
	// words are those for o.Verdict; nil without it.
	words *verdict.Words
	// allChains: every user stack is a frame-pointer chain.
	allChains bool
}

// taskView is one shown task with its shown threads, in groups.
type taskView struct {
	*kcdata.Task
	groups []*group // most interesting first
	shown  int      // threads
	hidden int      // threads that are folded, or our own
}

// newView sorts s by o. The view keeps s.
func newView(s *kcdata.Snapshot, o Options) *view {
	v := &view{
		s: s, o: o, stopped: map[uint64]bool{}, clock: model.NewClock(s), folded: map[string]int{}, printed: map[string]printed{},
		ids: map[identity]uint32{}, places: map[place][]*userFrame{}, kernelIDs: map[uint64]uint32{}, allChains: allChainOnly(s),
	}
	if o.Verdict != nil {
		v.words = verdict.For(s, o.Verdict)
	}
	for _, cpu := range account.CPUsWith(s, kcdata.CPUStopped) {
		v.stopped[cpu] = true
	}
	for _, t := range s.Tasks {
		v.counts.Tasks++
		v.counts.Threads += len(t.Threads)
		v.task(t)
	}
	slices.SortStableFunc(v.tasks, compareTasks)
	return v
}

// task sorts one task.
func (v *view) task(t *kcdata.Task) {
	tv := &taskView{Task: t}
	unfold := v.o.ShowIdle || v.o.Only != nil
	var keep []*threadView
	for _, th := range t.Threads {
		st := model.StateOf(th)
		switch {
		case v.o.Only != nil && !v.o.Only[th]:
			v.counts.NotAsked++
		case account.PanickedHere(v.s, th): // whoever it is
			keep = append(keep, v.thread(t, th, st))
			v.classes[st.Class]++
		case (t.IsSelf() || th.IsSelf()) && !v.o.ShowSelf:
			v.counts.HiddenSelf++
			tv.hidden++
		case st.Class == model.CPUIdle && !unfold:
			v.counts.FoldedCPUIdle++
			tv.hidden++
		case model.IsIdleKernel(t, th, st.Class) && !unfold:
			v.counts.FoldedKernel++
			tv.hidden++
			v.folded[family(t.Name, th.Name)]++
		default:
			keep = append(keep, v.thread(t, th, st))
			v.classes[st.Class]++
		}
	}
	if len(keep) == 0 && (len(t.Threads) > 0 || v.o.Only != nil || t.IsSelf() && !v.o.ShowSelf) {
		return // all its threads are folded, hidden or not asked for, and counted as such
	}
	tv.shown = len(keep)
	tv.groups = groupThreads(keep, v.fullKey)
	v.counts.Shown += tv.shown
	v.counts.TasksShown++
	v.tasks = append(v.tasks, tv)
}

// class is that of the task's most interesting thread.
func (t *taskView) class() model.Class {
	switch {
	case len(t.groups) > 0:
		return t.groups[0].state.Class
	case t.Transitioning:
		return model.Zombie
	}
	return model.Unknown
}

// compareTasks orders tasks by section. Tasks of a class up to Runnable are ordered by the
// class and the longest wait next, all tasks by the id last.
func compareTasks(a, b *taskView) int {
	c := cmp.Compare(section(a.class()), section(b.class()))
	if c == 0 && a.class() <= model.Runnable { // the first groups are those of the class, longest first
		c = cmp.Or(cmp.Compare(a.class(), b.class()), model.LongestFirst(a.groups[0].age, b.groups[0].age))
	}
	return cmp.Or(c, cmp.Compare(a.ID, b.ID))
}

// section groups classes under one heading.
func section(c model.Class) int {
	switch c {
	case model.Blocked:
		return 0
	case model.Running, model.Runnable:
		return 1
	case model.Zombie:
		return 3
	}
	return 2
}

var sectionNames = [...]string{
	"UNINTERRUPTIBLE SLEEP (D)", "RUNNING OR WAITING FOR A CPU", "SLEEPING, STOPPED, TRACED", "ZOMBIES",
}
