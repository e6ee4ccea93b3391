package filter

import (
	"stackshot/internal/model"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/kcdata"
)

// Filter is an expression made ready for one snapshot. It keeps what it has found out, so it
// is not safe for concurrent use.
type Filter struct {
	match test
	s     *kcdata.Snapshot
	clock *model.Clock
	v     *waitgraph.Verdict // nil: the expression does not need it
	words *verdict.Words     // for v
	modules
}

// test reports whether a thread meets a part of the expression.
type test func(*subject) bool

// subject is the thread that is looked at. Its fields are filled where a test needs them.
type subject struct {
	*Filter
	task   *kcdata.Task
	thread *kcdata.Thread
	texts  []string // what it waits for; nil: not asked yet
}

// Compile makes e, which Parse or Compare made, ready for s. v is the verdict on s; if it is
// nil and e needs one, Compile judges s.
func Compile(e *Expr, s *kcdata.Snapshot, v *waitgraph.Verdict) *Filter {
	f := &Filter{s: s, clock: model.NewClock(s), v: v}
	if e.Uses(Wait) {
		if f.v == nil {
			f.v = verdict.Judge(s, 0)
		}
		f.words = verdict.For(s, f.v)
	}
	if e.Uses(Module) {
		f.modules = modulesOf(s)
	}
	f.match = compile(e)
	return f
}

// Match reports whether a thread of a task of the snapshot meets the expression.
func (f *Filter) Match(task *kcdata.Task, th *kcdata.Thread) bool {
	return f.match(&subject{Filter: f, task: task, thread: th})
}

// Select are the threads of s that meet e. It is never nil.
func Select(e *Expr, s *kcdata.Snapshot, v *waitgraph.Verdict) map[*kcdata.Thread]bool {
	f, out := Compile(e, s, v), map[*kcdata.Thread]bool{}
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			if f.Match(task, th) {
				out[th] = true
			}
		}
	}
	return out
}

func compile(e *Expr) test {
	switch e.Op {
	case And, Or:
		stop := e.Op == Or // the first argument that is so decides
		tests := make([]test, len(e.Args))
		for i, a := range e.Args {
			tests[i] = compile(a)
		}
		return func(x *subject) bool {
			for _, t := range tests {
				if t(x) == stop {
					return stop
				}
			}
			return !stop
		}
	case Not:
		return negated(compile(e.Args[0]))
	case IsNot: // whatever the field has: of several functions on a stack none is it
		return negated(comparison(e.Field, Is, e.Value))
	}
	return comparison(e.Field, e.Op, e.Value)
}

func negated(t test) test { return func(x *subject) bool { return !t(x) } }

// comparison is the test of a field. e has passed check, so the value can be read.
func comparison(field string, op Op, v Value) test {
	switch kindOf(field) {
	case number, duration:
		read := numberOf
		if field == Age {
			read = durationOf
		}
		want, _ := read(v)
		get := numbers[field]
		return func(x *subject) bool {
			n, ok := get(x)
			return ok && compare(op, n, want)
		}
	case state:
		return stateTest(v[0])
	}
	return texts[field](matcher(op, v))
}

func compare(op Op, a, b uint64) bool {
	switch op {
	case Less:
		return a < b
	case AtMost:
		return a <= b
	case More:
		return a > b
	case AtLeast:
		return a >= b
	}
	return a == b
}
