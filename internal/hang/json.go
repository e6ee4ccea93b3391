package hang

import (
	"io"

	"stackshot/internal/account"
	"stackshot/internal/alarm"
	"stackshot/internal/report"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// JSONVersion is the version of the form that JSON writes and docs/hang-json.md describes.
// Keys are added without raising it.
const JSONVersion = 1

// document is a JSON document that is being written.
type document struct {
	*show.Stream
	o     *Options
	words *verdict.Words
	locks map[*kcdata.Thread][]waits.Resource // what each thread holds, for which others wait
	with  map[*waitgraph.Culprit]*uint32      // in whose sentence a culprit is told
	// What found no room: findings, threads of deadlocks and behind them, waits.
	findings, threads, waits int
}

// JSON writes the verdict and all waits as one object. Errors: the writer's,
// *report.CutError.
func JSON(w io.Writer, s *kcdata.Snapshot, v *waitgraph.Verdict, o Options) error {
	j := &document{Stream: show.NewStream(w), o: &o, words: verdict.For(s, v), with: map[*waitgraph.Culprit]*uint32{}}
	findings, told := verdict.Findings(v, o.Only), j.words.Told(o.Only)
	for _, f := range told {
		for _, c := range f.Others {
			j.with[c] = show.Number(f.Culprit.Wait.Thread.ID)
		}
	}
	deadlocks, culprits, convoys := split(findings)
	j.locks = held(v, deadlocks)
	j.Document(
		func() show.Object { return j.head(s, v, told) },
		func() show.Object {
			return show.Object{
				{"deadlocks", j.of(deadlocks, j.deadlock)}, {"culprits", j.of(culprits, j.culprit)}, {"convoys", j.of(convoys, j.convoy)},
				{"kinds", kindsJSON(totals(v, &o))}, {"waits", j.all(v)},
			}
		},
		func() show.Object {
			return show.Object{
				{"findings_left_out", show.Known(j.findings)}, {"threads_left_out", show.Known(j.threads)}, {"waits_left_out", show.Known(j.waits)},
			}
		})
	if err := j.W.Flush(); err != nil {
		return err
	}
	if n := j.findings + j.threads + j.waits; n > 0 {
		return &report.CutError{Threads: n, Bytes: o.MaxBytes}
	}
	return nil
}

// head holds the members before the lists.
func (j *document) head(s *kcdata.Snapshot, v *waitgraph.Verdict, told []verdict.Finding) show.Object {
	hangs := len(told) > 0
	turns, _ := turnsOf(j.words, j.o)
	return show.Object{
		{"format", "stackshot-hang"}, {"version", JSONVersion}, {"file", show.Known(show.Clean(j.o.File))},
		{"machine", account.MachineJSON(s)}, {"capture", account.CaptureJSON(s)}, {"panic", account.PanicJSON(s)},
		{"alarms", append([]string{}, alarm.All(s, j.o.Absent)...)},
		{"hangs", hangs}, {"verdict", summary(j.words, v, told)},
		{"recorded", j.words.Knows()}, {"threads", s.ThreadCount()}, {"threads_not_asked", notAsked(s, *j.o)}, {"one_instant", v.Waits.OneInstant}, {"limits", limitsOf(v, j.o)}, {"unaged", v.Unaged}, {"starved", len(starved(v, j.o))}, {"in_turn", verdict.Waiting(turns)},
	}
}

func (j *document) full() bool { return j.o.MaxBytes > 0 && j.Written >= j.o.MaxBytes }

// held says which locks the threads of deadlocks hold, for which others wait.
func held(v *waitgraph.Verdict, deadlocks []verdict.Finding) map[*kcdata.Thread][]waits.Resource {
	in := map[*kcdata.Thread]bool{}
	of := map[*kcdata.Task]*kcdata.Thread{} // what a process holds is told with its first thread
	for _, f := range deadlocks {
		for _, w := range f.Deadlock.Part {
			if in[w.Thread] = true; of[w.Task] == nil {
				of[w.Task] = w.Thread
			}
		}
	}
	type pair struct {
		thread   *kcdata.Thread
		resource waits.Resource
	}
	known := map[pair]bool{}
	out := map[*kcdata.Thread][]waits.Resource{}
	for _, w := range v.Waits.All {
		for i := range w.Owners {
			o := &w.Owners[i]
			th := o.Thread
			if o.Whole && o.Task != nil {
				th = of[o.Task]
			}
			p := pair{th, w.Resource}
			if o.Relation != waits.Holds || w.Resource == (waits.Resource{}) || !in[th] || known[p] {
				continue
			}
			known[p] = true
			out[th] = append(out[th], w.Resource)
		}
	}
	return out
}

// of has an object for each finding, as long as there is room.
func (j *document) of(findings []verdict.Finding, object func(verdict.Finding) show.Object) show.Items {
	return func(yield func(show.Object) bool) {
		for i, f := range findings {
			if j.full() {
				j.findings += len(findings) - i
				return
			}
			yield(object(f))
		}
	}
}

// split sorts findings by what they are.
func split(findings []verdict.Finding) (deadlocks, culprits, convoys []verdict.Finding) {
	for _, f := range findings {
		switch {
		case f.Deadlock != nil:
			deadlocks = append(deadlocks, f)
		case f.Culprit != nil:
			culprits = append(culprits, f)
		default:
			convoys = append(convoys, f)
		}
	}
	return deadlocks, culprits, convoys
}

func (j *document) deadlock(f verdict.Finding) show.Object {
	d := f.Deadlock
	return show.Object{
		{"confidence", verdict.Word(d.Confidence)}, {"sentence", j.words.Sentence(f)}, {"cycle", len(d.Cycle)},
		{"threads", j.list(inCycleFirst(d), j.member)}, {"behind_count", len(d.Behind)}, {"behind", j.list(d.Behind, waiter)},
	}
}

func (j *document) culprit(f verdict.Finding) show.Object {
	c := f.Culprit
	o := c.Owner
	o.Relation, o.Dead, o.Owes = "", false, false // they belong to a wait
	return append(verdict.OwnerJSON(&o), show.Object{
		{"reason", verdict.Word(c.Reason)}, {"sentence", j.words.Sentence(f)}, {"told_with", j.with[c]}, {"victims", len(c.Victims)},
		{"waits_for", verdict.WaitJSON(c.Wait)}, {"longest", longest(c.Victims)},
	}...)
}

func (j *document) convoy(f verdict.Finding) show.Object {
	c := f.Convoy
	owners, more := verdict.OwnersJSON(c.Owners)
	return show.Object{
		{"resource", verdict.ResourceJSON(c.Resource)}, {"sentence", j.words.Sentence(f)}, {"waiters", len(c.Waiters)},
		{"owners", owners}, {"owners_left_out", more}, {"longest", longest(c.Waiters)},
	}
}

// list has an object for each wait, as long as there is room.
func (j *document) list(list []*waits.Wait, object func(*waits.Wait) show.Object) show.Items {
	return func(yield func(show.Object) bool) {
		for i, w := range list {
			if j.full() {
				j.threads += len(list) - i
				return
			}
			yield(object(w))
		}
	}
}

// member is a thread of a deadlock.
func (j *document) member(w *waits.Wait) show.Object {
	holds := []show.Object{}
	for _, r := range j.locks[w.Thread] {
		holds = append(holds, verdict.ResourceJSON(r))
	}
	return append(waiter(w), show.Object{{"waits_for", verdict.WaitJSON(w)}, {"holds", holds}}...)
}

// waiter names the thread of a wait.
func waiter(w *waits.Wait) show.Object { return verdict.ThreadJSON(w.Task, w.Thread) }

// longest is who has waited longest of a list; nil of an empty one.
func longest(list []*waits.Wait) show.Object {
	if len(list) == 0 {
		return nil
	}
	return append(waiter(list[0]), [2]any{"waits_for", verdict.WaitJSON(list[0])})
}

func kindsJSON(list []total) []show.Object {
	return show.List(list, func(t *total) show.Object {
		atMost, about := t.longest.Age.Bounds()
		return show.Object{{"kind", verdict.Word(t.kind)}, {"threads", t.threads}, {"age_at_most_ns", atMost}, {"age_about_ns", about}}
	})
}

// all are the waits of the threads that are shown.
func (j *document) all(v *waitgraph.Verdict) show.Items {
	return func(yield func(show.Object) bool) {
		for _, w := range v.Waits.All {
			switch {
			case !j.o.shown(w.Task, w.Thread):
			case j.full():
				j.waits++
			default:
				yield(append(waiter(w), verdict.WaitJSON(w)...))
			}
		}
	}
}
