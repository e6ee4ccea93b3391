package latency

import (
	"cmp"
	"fmt"
	"slices"

	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Sched is the scheduling latency of the machine's own threads: the threads of the
// snapshotter and the CPUs' idle threads do not count.
type Sched struct {
	Threads  int      `json:"threads"`           // that were examined
	SelfLeft int      `json:"self_left_out"`     // threads of the snapshotter
	IdleLeft int      `json:"cpu_idle_left_out"` // idle threads of CPUs
	NotAsked int      `json:"threads_not_asked"`
	RunDelay RunDelay `json:"run_delay"`
	Waiting  Ages     `json:"waiting"`  // on a runqueue at the stop, not on a CPU
	Blocked  Ages     `json:"blocked"`  // in D: TASK_UNINTERRUPTIBLE without TASK_NOLOAD
	Sleeping Ages     `json:"sleeping"` // interruptible
}

// RunDelay says how long threads have waited for a CPU since they began. The wait in which
// a thread was at the stop does not count.
type RunDelay struct {
	Known int           `json:"known"` // threads that have run and whose delay is in the file
	Top   []ThreadDelay `json:"top"`   // greatest total first
	Dists []Dist        `json:"distributions"`
}

// ThreadDelay is the run delay of one thread.
type ThreadDelay struct {
	account.Who
	TotalNs uint64 `json:"total_ns"`
	Times   uint64 `json:"times_run"`
	MeanNs  uint64 `json:"mean_ns"` // total / times run
}

// Ages says how long the threads of one class have been in it.
type Ages struct {
	Threads int         `json:"threads"`
	Unknown int         `json:"age_unknown"` // of these
	About   int         `json:"age_about"`   // of these
	Longest []ThreadAge `json:"longest"`     // longest first, unknown ages last; of sleepers only known ones
	Dist    Dist        `json:"distribution"`
}

// ThreadAge is the age of one thread. Without AtMostNs and AboutNs it is unknown.
type ThreadAge struct {
	account.Who
	age      model.Age
	State    string  `json:"state"`                // in words
	AtMostNs *uint64 `json:"at_most_ns,omitempty"` // at the stop
	AboutNs  *uint64 `json:"about_ns,omitempty"`   // at the stop, if model.Age.About
	CPU      uint32  `json:"cpu"`
	Place    string  `json:"place,omitempty"` // kernel symbol it sleeps in
}

// collector sorts the threads of one file; only schedOf uses it.
type collector struct {
	s      *kcdata.Snapshot
	clock  *model.Clock
	delays []ThreadDelay
	ages   map[model.Class][]ThreadAge // of Runnable, Blocked and Sleeping
}

func schedOf(s *kcdata.Snapshot, top int, asked func(*kcdata.Thread) bool) Sched {
	out := Sched{}
	c := collector{s: s, clock: model.NewClock(s), ages: map[model.Class][]ThreadAge{}}
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			switch {
			case !asked(th):
				out.NotAsked++
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
	out.RunDelay.Known = len(c.delays)
	out.RunDelay.Top, out.RunDelay.Dists = greatest(c.delays, top,
		measured[ThreadDelay]{"run_delay_ns", func(d *ThreadDelay) *uint64 { return &d.TotalNs }},
		measured[ThreadDelay]{"run_delay_mean_ns", func(d *ThreadDelay) *uint64 { return &d.MeanNs }})
	out.Waiting = agesOf("waiting_ns", c.ages[model.Runnable], top)
	out.Blocked = agesOf("blocked_ns", c.ages[model.Blocked], top)
	out.Sleeping = agesOf("sleeping_ns", c.ages[model.Sleeping], top)
	// A thread of unknown age is worth a line if it is in D, not if it sleeps.
	out.Sleeping.Longest = slices.DeleteFunc(out.Sleeping.Longest, func(a ThreadAge) bool { return !a.age.Known })
	return out
}

// thread collects the run delay of a thread and, if it waits or sleeps, its age.
func (c *collector) thread(task *kcdata.Task, th *kcdata.Thread) {
	who := account.WhoThread(task, th)
	// A thread that has not run yet has no mean delay.
	if l := &th.Linux; th.HasLinux && l.Present&kcdata.ThreadHasRuntime != 0 && l.Pcount > 0 {
		c.delays = append(c.delays, ThreadDelay{who, l.RunDelay, l.Pcount, l.RunDelay / l.Pcount})
	}
	st := model.StateOf(th)
	if queued := st.Class == model.Runnable && st.Since == model.SinceQueued; !queued && st.Class != model.Blocked && st.Class != model.Sleeping {
		return
	}
	a := ThreadAge{Who: who, age: c.clock.Age(th, st.Since), State: st.Words, CPU: th.Linux.CPU, Place: place(c.s, th)}
	a.AtMostNs, a.AboutNs = a.age.Bounds()
	c.ages[st.Class] = append(c.ages[st.Class], a)
}

func agesOf(name string, all []ThreadAge, top int) Ages {
	out := Ages{Threads: len(all)}
	for i := range all {
		if all[i].age.About {
			out.About++
		}
	}
	out.Dist = distOf(name, UnitNs, all, func(a *ThreadAge) *uint64 { return cmp.Or(a.AtMostNs, a.AboutNs) })
	out.Unknown = out.Threads - out.Dist.Count
	slices.SortStableFunc(all, func(a, b ThreadAge) int { return model.LongestFirst(a.age, b.age) })
	out.Longest = first(all, top)
	return out
}

// place says where in the kernel a thread sleeps: in the first function that is not the
// scheduler's, else in the symbol that /proc gave; "" if the file has neither.
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

func (p *page) sched(s *Sched) {
	left := fmt.Sprintf("left out: %d of our own, %d of idle CPUs", s.SelfLeft, s.IdleLeft)
	if s.NotAsked > 0 {
		left += fmt.Sprintf(", %d not asked for", s.NotAsked)
	}
	p.heading("SCHEDULING LATENCY of %s (%s)", show.Count(s.Threads, "thread"), left)
	p.runDelay(&s.RunDelay)
	p.ages("waiting for a CPU", &s.Waiting)
	p.ages("in D", &s.Blocked)
	p.ages("sleeping", &s.Sleeping)
}

func (p *page) runDelay(d *RunDelay) {
	if d.Known == 0 {
		p.Line("run-queue delay: not in the file")
		return
	}
	p.Line("run-queue delay since each thread began:")
	p.table(true, rowsOf([]string{"total", "times run", "mean", "thread"}, d.Top, func(r *ThreadDelay) []string {
		return []string{show.Fine(r.TotalNs), show.Thousands(r.Times), show.Fine(r.MeanNs), r.Who.String()}
	}))
	p.more(d.Known-len(d.Top), "thread")
}

// ages writes which threads had been in one class for the longest time at the stop.
func (p *page) ages(class string, a *Ages) {
	p.Line("")
	if a.Threads == 0 {
		p.Line("no thread %s", class)
		return
	}
	s := show.Count(a.Threads, "thread") + " " + class
	var but show.Parts
	but.If(a.About > 0, "age of %d only about, by another CPU's clock", a.About)
	but.If(a.Unknown > 0, "age of %d unknown", a.Unknown)
	if len(but) > 0 {
		s += " (" + but.Join("; ") + ")"
	}
	if len(a.Longest) == 0 {
		p.Line("%s", s)
		return
	}
	p.Line("%s:", s)
	p.table(true, rowsOf([]string{"at most", "CPU", "thread"}, a.Longest, func(r *ThreadAge) []string {
		age, who := "unknown", r.Who.String()
		if r.age.Known {
			age = show.Fine(r.age.Ns)
		}
		if r.age.About {
			age = "about " + age
		}
		if r.Place != "" {
			who += " in " + r.Place
		}
		return []string{age, fmt.Sprint(r.CPU), who}
	}))
	p.more(a.Threads-len(a.Longest), "thread")
}
