package latency

import (
	"fmt"
	"slices"

	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Sched is the scheduling latency of the machine's own threads: those of the
// snapshotter and the CPUs' idle threads do not count.
type Sched struct {
	Threads  int      `json:"threads"` // looked at
	SelfLeft int      `json:"self_left_out"`
	IdleLeft int      `json:"cpu_idle_left_out"`
	RunDelay RunDelay `json:"run_delay"`
	Waiting  Ages     `json:"waiting"`  // on a runqueue at the stop, not on a CPU
	Blocked  Ages     `json:"blocked"`  // in D: TASK_UNINTERRUPTIBLE without TASK_NOLOAD
	Sleeping Ages     `json:"sleeping"` // interruptible
}

// RunDelay is what threads have waited for a CPU in all their life; the wait
// they were in at the stop is not in it.
type RunDelay struct {
	Known int           `json:"known"` // threads that have run and of which it was read
	Top   []ThreadDelay `json:"top"`   // greatest total first
	Dists []Dist        `json:"distributions"`
}

// ThreadDelay is one thread's.
type ThreadDelay struct {
	account.Who
	TotalNs uint64 `json:"total_ns"`
	Times   uint64 `json:"times_run"`
	MeanNs  uint64 `json:"mean_ns"` // total / times run
}

// Ages is how long the threads of one class have been in it.
type Ages struct {
	Threads int         `json:"threads"`
	Unknown int         `json:"age_unknown"` // of these
	About   int         `json:"age_about"`   // of these
	Longest []ThreadAge `json:"longest"`     // longest first, unknown ages last; of sleepers only known ones
	Dist    Dist        `json:"distribution"`
}

// ThreadAge is one thread's; neither of the two: unknown.
type ThreadAge struct {
	account.Who
	age      model.Age
	State    string  `json:"state"`
	AtMostNs *uint64 `json:"at_most_ns,omitempty"` // at the stop
	AboutNs  *uint64 `json:"about_ns,omitempty"`   // likewise, where model.Age.About
	CPU      uint32  `json:"cpu"`
	Place    string  `json:"place,omitempty"` // kernel symbol it sleeps in
}

// collector sorts the threads of one file; only schedOf uses it.
type collector struct {
	s                          *kcdata.Snapshot
	clock                      *model.Clock
	delays                     []ThreadDelay
	waiting, blocked, sleeping []ThreadAge
}

func schedOf(s *kcdata.Snapshot, top int) Sched {
	out := Sched{}
	c := collector{s: s, clock: model.NewClock(s)}
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			switch {
			case th.IsIdle():
				out.IdleLeft++
			case th.IsSelf() || task.IsSelf():
				out.SelfLeft++
			default:
				out.Threads++
				c.thread(task, th)
			}
		}
	}
	out.RunDelay = runDelays(c.delays, top)
	out.Waiting, out.Blocked = agesOf("waiting_ns", c.waiting, top), agesOf("blocked_ns", c.blocked, top)
	out.Sleeping = agesOf("sleeping_ns", c.sleeping, top)
	// A sleeper of unknown age is nothing to look at; one in D is.
	out.Sleeping.Longest = slices.DeleteFunc(out.Sleeping.Longest, func(a ThreadAge) bool { return !a.age.Known })
	return out
}

func (c *collector) thread(task *kcdata.Task, th *kcdata.Thread) {
	if d, ok := runDelay(task, th); ok {
		c.delays = append(c.delays, d)
	}
	st := model.StateOf(th)
	switch {
	case st.Class == model.Runnable && st.Since == model.SinceQueued:
		c.waiting = append(c.waiting, c.age(task, th, st))
	case st.Class == model.Blocked:
		c.blocked = append(c.blocked, c.age(task, th, st))
	case st.Class == model.Sleeping:
		c.sleeping = append(c.sleeping, c.age(task, th, st))
	}
}

// runDelay is not known of a thread that has not run yet: there is nothing to
// take a mean of.
func runDelay(task *kcdata.Task, th *kcdata.Thread) (ThreadDelay, bool) {
	l := &th.Linux
	if !th.HasLinux || l.Present&kcdata.ThreadHasRuntime == 0 || l.Pcount == 0 {
		return ThreadDelay{}, false
	}
	return ThreadDelay{account.WhoThread(task, th), l.RunDelay, l.Pcount, l.RunDelay / l.Pcount}, true
}

func runDelays(all []ThreadDelay, top int) RunDelay {
	out := RunDelay{Known: len(all)}
	out.Top, out.Dists = greatest(all, top,
		measured[ThreadDelay]{"run_delay_ns", func(d *ThreadDelay) *uint64 { return &d.TotalNs }},
		measured[ThreadDelay]{"run_delay_mean_ns", func(d *ThreadDelay) *uint64 { return &d.MeanNs }})
	return out
}

func (c *collector) age(task *kcdata.Task, th *kcdata.Thread, st model.State) ThreadAge {
	a := ThreadAge{Who: account.WhoThread(task, th), age: c.clock.Age(th, st.Since), State: st.Words, CPU: th.Linux.CPU, Place: place(c.s, th)}
	a.AtMostNs, a.AboutNs = a.age.Bounds()
	return a
}

func agesOf(name string, all []ThreadAge, top int) Ages {
	var known []uint64
	about := 0
	for i := range all {
		if age := all[i].age; age.Known {
			known = append(known, age.Ns)
		}
		if all[i].age.About {
			about++
		}
	}
	slices.SortStableFunc(all, func(a, b ThreadAge) int { return model.LongestFirst(a.age, b.age) })
	return Ages{
		Threads: len(all), Unknown: len(all) - len(known), About: about,
		Longest: first(all, top), Dist: distOf(name, UnitNs, known),
	}
}

// place is where in the kernel a thread sleeps: the first frame that
// distinguishes it, else the symbol that /proc gave; "" where nobody knows.
func place(s *kcdata.Snapshot, th *kcdata.Thread) string {
	frames := model.SkipSleep(s.Symbols, th.Kernel)
	if len(frames) == 0 {
		if th.Wchan == "0" {
			return ""
		}
		return show.Clean(th.Wchan)
	}
	if sym, ok := s.Symbols.Name(frames[0]); ok {
		return show.Clean(sym.Name)
	}
	return fmt.Sprintf("%#x", frames[0])
}
