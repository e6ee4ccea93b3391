// Package hanglab is the hang laboratory: real processes that hang in known ways, and
// what has to be said of each. It is for tests only. The processes are those of
// [stackshot/internal/testtask] (raw system calls) and [stackshot/internal/userlab]
// (programs in C, Rust and Go).
//
//	Cases ──Start──► Running: who plays which role ─┐
//	            └──► stackshot hang --format json ──┴► Check: what is wrong, and nothing else
//
// A test reads like this:
//
//	lab := hanglab.New(t)
//	for _, c := range hanglab.Cases() {
//		errs := lab.Try(t, c, minWait, func(*hanglab.Running) (*hanglab.Verdict, []error) {
//			// stackshot hang --format json --min-wait ..., and Parse
//		})
//	}
//
// A case says everything that may be said of its threads: who is in a deadlock, who is
// behind, who is a culprit, for what reason and whose. A thread that is accused of more is
// an error, and so is an owner that the case does not name.
package hanglab
