package waits

import (
	"stackshot/internal/model"
	"stackshot/kcdata"
)

// Of finds out what each thread of s waits for. s is not changed.
func Of(s *kcdata.Snapshot) *Waits {
	f := newFinder(s)
	w := &Waits{Of: make(map[*kcdata.Thread]*Wait, f.threads), Limits: limits(s), Unrecorded: !recorded(s), OneInstant: oneInstant(s), CPUs: s.CPUs}
	for _, task := range s.Tasks {
		for _, t := range task.Threads {
			if wait := f.wait(task, t); wait != nil {
				w.All = append(w.All, wait)
				w.Of[t] = wait
			}
		}
	}
	f.nameWords(w.All)
	nameInitializers(w.All)
	f.doubtYounger(w.All)
	return w
}

// finder finds the waits of one snapshot. Nothing changes the snapshot; all indices are made
// in one pass over it.
type finder struct {
	s     *kcdata.Snapshot
	clock *model.Clock
	index
	ends      *ends
	looked    []look // at the files of the thread that is being looked at
	mounted   map[seenFrom]*kcdata.LinuxMount
	points    map[string][]int32                  // mounts, by their points, once a path is looked for
	onCommand map[*kcdata.Task]*kcdata.LinuxMount // by nameOnCommandLine
	ownMounts uint32                              // the mount namespace of this program; 0: not known
	marks     map[uint64]*marks                   // of kernel functions, by address
	owned     map[Resource]Kind                   // words of user memory that stacks say are those of a runtime of its own
	named     map[Resource]Kind                   // words of user memory whose kind the bytes around them or a stack told
	waitedFor map[group]bool                      // processes and pid namespaces for whose threads somebody waits (own.go)
	workers   map[*kcdata.Task]map[string][]member
	dumpers   map[*kcdata.Task]*kcdata.Thread // who takes a core dump; nil entry: nobody
}

func newFinder(s *kcdata.Snapshot) *finder {
	return &finder{
		s: s, clock: model.NewClock(s), index: newIndex(s), ends: newEnds(s),
		mounted: map[seenFrom]*kcdata.LinuxMount{}, onCommand: map[*kcdata.Task]*kcdata.LinuxMount{}, ownMounts: ownMounts(s),
		marks: map[uint64]*marks{}, named: map[Resource]Kind{}, owned: map[Resource]Kind{},
		waitedFor: map[group]bool{}, workers: map[*kcdata.Task]map[string][]member{}, dumpers: map[*kcdata.Task]*kcdata.Thread{},
	}
}

// wait is what t waits for; nil: it runs, has ended, or the file does not say.
func (f *finder) wait(task *kcdata.Task, t *kcdata.Thread) *Wait {
	st := model.StateOf(t)
	w := &Wait{Task: task, Thread: t, State: st, Age: f.clock.Age(t, st.Since), Evidence: Field, Confidence: Sure, When: f.when(t)}
	switch st.Class {
	case model.Runnable:
		return f.cpu(w)
	case model.Held:
		f.held(w)
	case model.Parked:
		w.Kind = AtRest
	case model.Blocked:
		w.Function, _ = Function(f.s, t)
		f.asleep(w)
	case model.Sleeping, model.Idle:
		f.asleep(w)
	default:
		return nil
	}
	return w
}

// asleep tries the sources in the order of their worth. A thread that is frozen or waits in
// vfork is in no lock.
func (f *finder) asleep(w *Wait) {
	names := f.namesOf(w.Thread)
	switch {
	case f.vfork(w, names):
	case f.frozen(w, names):
	case f.kernelLock(w, names):
	case f.futex(w):
	default:
		f.byStack(w, names)
	}
}

// when says at what moment t was read. A thread of a stopped machine without on_cpu was read
// from /proc: its task was hidden from the engine, or came too late.
func (f *finder) when(t *kcdata.Thread) When {
	switch {
	case f.s.Engine == "procfs" || f.s.Isolation == "none":
		return NotAtOne
	case t.Sample != nil, t.HasLinux && t.Linux.Present&kcdata.ThreadHasOnCPU == 0:
		return Later
	}
	return Window
}

// note adds a sentence without its full stop.
func (w *Wait) note(s string) { w.Notes = append(w.Notes, s) }
