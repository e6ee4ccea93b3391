// Package hang shows what hangs, and what all threads wait for: as text, as JSON and as a
// graph for Graphviz. It is a pure function of a decoded snapshot and the verdict on it.
//
// What it promises:
//
//	H1  Every thread that a finding concerns is shown or counted: "and 37 more".
//	H2  Nothing that came from the machine reaches the output raw.
//	H3  Text and graph are bounded, however large the verdict is. JSON is bounded by
//	    Options.MaxBytes and says what it leaves out.
//	H4  What the file cannot tell is said. Without records of waits nobody is accused.
package hang

import "stackshot/kcdata"

// Options choose what is shown.
type Options struct {
	File     string // where the snapshot is; "": nowhere
	Pids     []int  // shows only what concerns these tasks (container id: tgid); empty: all
	MaxBytes int64  // limits JSON, and the stacks of Text, as report.Options does; 0: no limit

	// NotSymbolized says which files were not symbolized, and why: names of functions tell what
	// some threads wait for.
	NotSymbolized []string

	// For Text only.

	Width int  // of the terminal, in cells: longer lines are cut, sentences wrapped. 0: no limit
	Color bool // marks headings and findings with ANSI colours
}

// asked are the tasks of o.Pids; nil for all.
func (o *Options) asked() map[uint32]bool {
	if len(o.Pids) == 0 {
		return nil
	}
	pids := make(map[uint32]bool, len(o.Pids))
	for _, pid := range o.Pids {
		pids[uint32(pid)] = true
	}
	return pids
}

// shown reports whether the waits of a task are shown: it was asked for and is not the
// snapshotter's own.
func shown(t *kcdata.Task, pids map[uint32]bool) bool {
	return !t.IsSelf() && (len(pids) == 0 || t.ID < 1<<32 && pids[uint32(t.ID)])
}
