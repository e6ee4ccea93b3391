// Package stop stops the machine. There is one worker for each CPU, made and parked
// beforehand, and one word by which they agree. The engine says what a worker does while
// its CPU is held (Recorder).
//
//	Team    the workers, the loaded programs, what is put back after a stop
//	Try     one stop: main is woken, opens the gate, all arrive, hold, leave
//	State   the word; every decision of a try is one change of it
//	Gate    wakes parked workers, for one try at a time
//
// turn.go, state.go and worker.go run in the window. The invariants that hold there
// stand in snapshot/doc.go; docs/concurrency.md says who may write what.
package stop
