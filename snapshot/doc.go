// Package snapshot stops the CPUs of this machine for a few milliseconds,
// records every task and thread, lets the machine run on, and writes what it
// saw as KCData.
//
//	Open   plan ─► engine: programs loaded, workers made and parked
//	Take   scope ─► try: stop ─► census ─► queues ─► workers ─► arenas ─► release
//	                ▲                                              │
//	                └── too little memory: double it, try again ◄──┤
//	                                                               ▼
//	       reconcile with /proc ─► collate by census index ─► enrich ─► Output
//	Close  threads ended, memory given back
//
// The packages in the order of the data: internal/engine/stop, trap, pull, proc and sample
// record; internal/capture is what they return; internal/collate makes the file of it.
// This package has the order of these stages, and what a session decides. By file: options,
// plan and throttle (which CPUs), thrift and thriftmemory (what is left out for want of
// process ids and memory), engines (which one), armed (who would end a stop when the kernel
// panics), tries, sampled (when CPUs that were not
// stopped are asked), reconcile, result, lock and lockfile (the machine's lock).
//
// docs/glossary.md has the words.
//
// # What it may assume
//
// Linux 6.1 or newer on amd64 or arm64; CLOCK_MONOTONIC is the same on all CPUs
// and is what bpf_ktime_get_ns reads. Everything else may be refused: BTF, BPF,
// SCHED_FIFO, locked memory, kernel symbols. With each refusal the result is smaller,
// and a warning says so.
//
// # What it promises
//
// Tests carry these numbers.
//
//  1. The window is quiet: between a worker's arrival and its release nothing
//     of ours allocates, takes a lock, faults, logs, sleeps, or waits for a
//     thread that is not itself a worker of the stop. While the CPUs are held
//     no other thread runs: such a wait would last until the deadline, or for
//     ever. Engine pull cannot keep this wholly, since the system calls that
//     make an iterator allocate and take mutexes inside the kernel. So each
//     worker counts its own context switches between arrival and release, and
//     the sum stands in the file (stop_broken) and in a warning; and under
//     memory pressure EngineAuto does not use pull at all. Engine trap keeps
//     it: all that it needs is there when its CPU arrives. Otherwise a picture
//     of several moments passes for one of a single moment.
//  2. Every wait has a deadline, and every stop a release that needs nobody
//     else: each worker leaves at its own absolute deadline, and the kernel
//     lets go of the CPUs when the process dies. Otherwise a fault of ours is a
//     hung machine.
//  3. A stop is decided once, by one word: arriving to committed or to aborted,
//     by a compare-and-swap. There is one absolute arrival deadline for all
//     workers, fixed before they are woken. A worker that loses the swap obeys
//     what it reads; a worker that was not counted in never enters. A try has a
//     number: a worker of an earlier try, which comes loose late, has no part in
//     it; nor has a worker that is not on its CPU. When the kernel panics, its word ends the stop
//     in every phase, and nothing leads back. Otherwise one CPU stands still while the others
//     have given up, or records while others run.
//  4. Order comes from the census index, never from time: tasks are merged by it,
//     whichever worker recorded them. Otherwise the same world gives another file
//     with another number of CPUs.
//  5. Nothing is silently lost. A task that was seen and is not in the file
//     stands in its left_out list with the reason, or, when it ended on its
//     own, in the count of vanished ones; a CPU that did not come is named; a
//     truncated stack is marked, and so is one that lacks an unwind table, with
//     the file that was not read. What the kernel hides from BPF iterators is
//     found by comparing with /proc afterwards. Otherwise an absent culprit
//     looks like innocence.
//  6. Every shared field has one writer at a time, named where it is declared
//     (docs/concurrency.md has them all in one table).
//  7. Missing is never zero: a value that could not be read is absent from the
//     file, or its presence bit is clear.
//  8. The Go runtime never needs a worker that cannot run. The collection is
//     finished and the collector off before the wake; a parked worker sits in a
//     system call the runtime knows of; a worker that does not come is un-pinned
//     from outside before anything waits for it. Otherwise somebody's real-time
//     task hangs this process for as long as it lives.
//  9. Nothing that belongs to somebody else is waited for without a limit. What
//     only /proc can tell is read after the release, each read by a helper that
//     is given up when it hangs; the environment of a process is never read.
//     Otherwise the stuck process, the one we came for, hangs us too.
//  10. One capture per machine at a time, by a lock that ends with its holder. A
//     process that may not use the lock captures without it, and the file says so. Otherwise each
//     of two captures finds the other's workers on its CPUs.
//  11. The machine's own settings are left alone: real-time throttling, watchdogs
//     and the like stay as they are, being the last safety net under 2.
//  12. The file says how much of one instant it is. When all is recorded each
//     thread's context switches and run time are read again, before the release
//     where there is a stop. Threads that ran in between are counted and named;
//     threads that could not be compared are counted too. Otherwise nobody knows which two
//     stacks of a file belong together.
//
// # Concurrency
//
// A Session is safe to use from several goroutines; its Takes run one after the
// other. GOMAXPROCS is raised while a session with workers (engine trap or pull) is
// open; the collector's settings are changed for the length of a stop.
package snapshot
