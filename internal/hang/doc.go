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
	MaxBytes int64  // limits JSON, and the stacks of Text, as report.Options does; 0: no limit

	Only   map[*kcdata.Thread]bool // shows only what concerns these threads; nil: all. All are judged
	Absent []uint64                // numbers of tasks and threads that were asked for and are not in the file

	// NotSymbolized says which files were not symbolized, and why: names of functions tell what
	// some threads wait for.
	NotSymbolized []string

	// For Text only.

	Width int  // of the terminal, in cells: longer lines are wrapped. 0: no limit
	Color bool // marks headings and findings with ANSI colours
}

// shown reports whether a thread is shown: it was asked for and is not the snapshotter's own.
func (o *Options) shown(t *kcdata.Task, th *kcdata.Thread) bool {
	return !t.IsSelf() && (o.Only == nil || o.Only[th])
}
