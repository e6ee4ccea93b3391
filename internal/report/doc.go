// Package report turns a decoded snapshot into text, JSON, folded stacks and
// profiles.
//
// It is a pure function of the snapshot, and of the verdict on it if there is one (package
// verdict): it reads nothing else, so a file taken on one machine reads the same on another. What it promises:
//
//	R1  Every thread of the snapshot is accounted for: it is shown, folded
//	    into a counted line, hidden because it is the snapshotter's own, or
//	    was not asked for. The numbers add up, and the last line states them.
//	R2  Nothing that came from the machine reaches the output raw. Control
//	    characters, escape sequences, bidirectional controls and invalid
//	    UTF-8 appear as \xNN: a process may name itself as it likes.
//	R3  What limits trust in the picture comes right behind the machine (package alarm): CPUs
//	    that did not stop in time or were left running, a broken stop, tasks that were left out.
//	R4  A missing value is not a zero: what the file does not hold is not shown.
//	R5  Text begins with the whole first screen (package screen), which answers the first
//	    question: what is stuck, where, since when; and who is to blame.
package report
