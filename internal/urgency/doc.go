// Package urgency runs this process at a real-time priority for a bounded time.
//
// A machine in trouble has more work than CPUs, and a capture is a second of work: beside 24
// busy threads on two CPUs it would take half a minute. So everything that the file waits for
// runs at SCHED_RR priority 1, in helper processes too, which inherit it. (A nice value of -20
// would not do: it counts only among the threads of one control group.)
//
//	Begin ─► each ordinary thread to SCHED_RR 1 ─► ... ─► End: each back
//	  ├─ until ─► keeper, a thread at SCHED_RR 99: asleep ─► the budget is spent: each back
//	  └─ beat, a goroutine ─► keeper: no beat for 1 s: each to SCHED_RR 98 ─► for another: each back
//
// At RR 1 nothing of ours runs while real-time tasks have all CPUs, for as long as they live; and an
// ordinary thread has the share that the kernel keeps for those, a twentieth of each CPU. So a
// process that has had no CPU is raised above them, within its budget.
//
// Two kinds of threads keep their priority: those at SCHED_FIFO, as the workers of a capture
// are, and all that had another policy than the ordinary one when we were started (but SCHED_RR 1 and 98: so
// helper processes are started).
//
// # The keeper
//
// The Go scheduler cannot end an urgency that went wrong. If somebody's FIFO task keeps one of
// our threads from its CPU in the middle of a collection, the other threads may wait for it, some of
// them spinning, and the runtime runs no goroutine before it goes on. So the keeper does not
// come back from the kernel, as the runtime sees it: its code makes system calls between
// entersyscall and exitsyscall. There it has no P, nobody waits for it, and it waits
// for nobody. It may not use what needs a P: it allocates nothing, writes no pointer,
// does not grow its stack, and calls only functions that do not either. A build with both the race
// detector and atomic counters of coverage would put such calls into it: there is none.
//
// # Invariants
//
//  1. No thread stays urgent if the keeper cannot be at its priority. Until it is, startTime at most,
//     the kernel's limit alone guards (Limit): a keeper that began as an ordinary thread might come late.
//  2. The keeper's priority is above that of the threads that it lowers, raised ones too (if it may
//     not have that, it raises none): it runs on the CPU on which they spin. The workers of a
//     capture, at FIFO 99, are above all of them: a stop waits for none, but for a pass of the
//     keeper's. A CPU that somebody's FIFO task has does none of our spinning.
//  3. A thread inherits its schedule from the one that makes it. So once a pass over all threads finds none
//     that is urgent, and none is being made, none can come. The keeper makes none.
//  4. What lowers the threads again was opened before they were raised.
//  5. Each Begin gives a budget of CPU time, in the clock of this process: a spin spends it.
package urgency
