package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stackshot/internal/filter"
	"stackshot/internal/show"
	"stackshot/internal/waitgraph"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// narrowing has the flags that choose the threads of a file which a command shows.
type narrowing struct {
	where string
	pids  []int
	short [len(shortForms)][]string // the values of each of shortForms
	expr  *filter.Expr              // of all of them; nil: all threads. check makes it
}

// shortForms are flags that stand for a comparison.
var shortForms = [...]struct {
	flag, field string
	op          filter.Op
	usage       string
}{
	{"state", filter.State, filter.Is, "show only threads in this `STATE`: D, R, S, T, ..., or blocked, running, stopped, ..."},
	{"name", filter.Name, filter.Is, "show only threads with this `NAME` of thread, task or program; * is a wildcard"},
	{"func", filter.Func, filter.Is, "show only threads with this `FUNCTION` on a stack; * is a wildcard"},
	{"module", filter.Module, filter.Is, "show only threads with a function of this kernel `MODULE`, program or library on a stack; * is a wildcard"},
	{"cgroup", filter.Cgroup, filter.Part, "show only threads whose control group's path has this `PART`"},
	{"waits-for", filter.Wait, filter.Is, "show only threads that wait for this `KIND` of thing (mutex, block_io, ...), mount point or lock"},
}

func (n *narrowing) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&n.where, "where", "", "show only threads for which this `EXPRESSION` is true, as in 'state=D and not name=kworker*'")
	f.IntSliceVar(&n.pids, "pid", nil, "show only the task or thread with this `ID`")
	for i, s := range shortForms {
		f.StringArrayVar(&n.short[i], s.flag, nil, s.usage)
	}
	completeWith(cmd, "state", filter.States()...)
	completeWith(cmd, "waits-for", filter.Waits()...)
	err := cmd.RegisterFlagCompletionFunc("where", func(_ *cobra.Command, _ []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return filter.Complete(text), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	if err != nil {
		panic(err) // a flag that is not there
	}
}

// narrowHelp ends the help of the commands with these flags.
var narrowHelp = "\n\n--where and its short forms (--state, --name, --func, --module, --cgroup, --waits-for,\n" +
	"--pid) choose the threads that are shown. If one short form is given twice, one of the two\n" +
	"has to be true; of different ones, all. Exit code 3 if no thread is left. The fields of\n" +
	"--where are " + strings.Join(filter.Fields(), ", ") + ".\n" +
	"'stackshot help where' tells what they are."

// check makes the expression, before anything is read.
func (n *narrowing) check(cmd *cobra.Command) error {
	var all []*filter.Expr
	if cmd.Flags().Changed("where") {
		e, err := filter.Parse(n.where)
		if err != nil {
			return usage("--where: " + err.Error())
		}
		all = append(all, e)
	}
	var pids []*filter.Expr
	for _, pid := range n.pids {
		if uint64(pid) >= 1<<32 { // or less than 0
			return &snapshot.OptionError{Option: "pid", Value: fmt.Sprint(pid), Reason: "want the id of a task or thread"}
		}
		for _, field := range []string{filter.Pid, filter.Tid} {
			e, err := filter.Compare(field, filter.Is, filter.Literal(fmt.Sprint(pid)))
			if err != nil {
				return err
			}
			pids = append(pids, e)
		}
	}
	all = append(all, filter.Any(pids...))
	for i, s := range shortForms {
		var either []*filter.Expr
		for _, text := range n.short[i] {
			e, err := filter.Compare(s.field, s.op, filter.ParseValue(text))
			if err != nil {
				return usage("--" + s.flag + ": " + err.Error())
			}
			either = append(either, e)
		}
		all = append(all, filter.Any(either...))
	}
	n.expr = filter.All(all...)
	return nil
}

// choose finds the threads of s that are shown (nil: all), and the numbers of --pid that s does
// not have. v may be nil.
func (n *narrowing) choose(s *kcdata.Snapshot, v *waitgraph.Verdict) (only map[*kcdata.Thread]bool, absent []uint64) {
	if n.expr == nil {
		return nil, nil
	}
	missing := make(map[uint64]bool, len(n.pids))
	for _, pid := range n.pids {
		missing[uint64(pid)] = true
	}
	for _, t := range s.Tasks {
		delete(missing, t.ID)
		for _, th := range t.Threads {
			delete(missing, th.ID)
		}
	}
	return filter.Select(n.expr, s, v), slices.Sorted(maps.Keys(missing))
}

// none is the error of a file of which no thread is shown; nil: there are some. self: our own
// threads are shown.
func (n *narrowing) none(name string, s *kcdata.Snapshot, only map[*kcdata.Thread]bool, absent []uint64, self bool) error {
	if n.expr == nil {
		return nil
	}
	own := 0
	for _, t := range s.Tasks {
		for _, th := range t.Threads {
			switch {
			case only[th] && (self || !t.IsSelf() && !th.IsSelf()):
				return nil
			case only[th]:
				own++
			}
		}
	}
	why := ""
	if len(absent) > 0 {
		why = "; not in the file: pid " + show.Ranges(absent, 12)
	}
	if own > 0 {
		why += "; of our own threads " + fmt.Sprint(own) + " would"
	}
	return partial(errors.New(show.Clean(fmt.Sprintf("%s: none of %s matches %s%s", name, show.Count(s.ThreadCount(), "thread"), show.Fit(n.expr.String(), maxAsked), why))))
}

// maxAsked bounds the expression in a message, in cells.
const maxAsked = 200

// sayHidden says on standard error how many threads are not shown, and that there is something wrong with
// the file, for a form that has no place for it.
func (n *narrowing) sayHidden(s *kcdata.Snapshot, only map[*kcdata.Thread]bool) {
	if out := s.ThreadCount() - len(only); n.expr != nil && out > 0 {
		say(os.Stderr, "%d of %s not shown", out, show.Count(s.ThreadCount(), "thread"))
	}
	if n := len(s.Problems); n > 0 && !s.Partial { // which is said
		say(os.Stderr, "%s with the file: 'stackshot report' says more", show.Count(n, "problem"))
	}
}
