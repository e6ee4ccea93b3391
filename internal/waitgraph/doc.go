// Package waitgraph says who is stuck, and why: it joins the waits of a snapshot (package
// waits) into a graph of threads, and finds deadlocks, chains that end in a culprit, convoys.
// It is pure: the same waits in any order give the same verdict.
//
//	waits.Waits ─► graph ─┬─► stuck: who can never go on by itself ─► deadlocks, Behind
//	                      ├─► blame: the rest, with culprits held still ─► culprits, victims, trees
//	                      └─► convoys, starved
//
// The graph is an AND/OR graph. A thread waits by at most one Wait, for all its owners or for
// any one of them (AnyOwner). A process that owns something as a whole is a vertex with its threads
// as alternatives. Both analyses use one rule (stuck.go) with different ends:
// a thread is stuck if one owner that it needs is stuck, or all that could help are.
//
// # Invariants
//
//	I1. Every deadlock is one: none of its threads can go on if nobody from outside acts,
//	    its Part is a strongly connected part with a cycle, and its Cycle is a cycle in it.
//	I2. No deadlock is missed, and no thread is in two.
//	I3. A Cycle is a shortest one of its part (Deadlock.Cycle says up to which size); a process
//	    on it counts as one more step. A deadlock is Sure only if its cycle is of sure waits
//	    and the file of one instant.
//	I4. Behind has every other stuck thread once, and nobody who has a free alternative.
//	I5. The order of waits and of their owners does not matter. Threads are ordered by
//	    (tgid, tid).
//	I6. Who is a victim has waited MinWait, and waits, directly or not, for the culprit
//	    with which it is listed. Each victim is listed once, and reaches no culprit of an
//	    earlier place in the order by which Judge chooses.
//	I7. Ordinary work is not accused: a wait for a child's or a thread's end has a culprit
//	    only if that is in D, stopped, traced or frozen for MinWait, or dead; one with
//	    alternatives only if all of them are. A lock that such a child or thread has waited
//	    for a shorter time than MinWait is its ordinary work. Nor is a lock's holder accused
//	    that sleeps or stands for less than MinWait: it may have had the lock for a moment.
//	    A lock of a file is ordinary work, and so is one that the leader of a pool has while it
//	    waits for news (turns.go). So is any lock whose holder waits for a person, or for room at
//	    a reader that runs. None of these makes a convoy, but a lock of a file whose holder
//	    does not work; nor does a lock of which nobody is known to have it, if a thread that
//	    goes on so may have it. A tracer does not wait for whom it has stopped, unless a lock
//	    leads there.
//	I8. Nobody is accused by what was not read in a stop (NotAtOne), by waits of unknown age,
//	    or by this program's own threads; these are no culprits either.
//	I9. Time and memory are linear in waits and owners, beside sorting, whatever the graph's
//	    shape. Nothing recurses.
//	I10. A process is stuck only if all its threads are that have not ended. A thread that is
//	    at rest (it waits for the next request), or that a timeout wakes at a file where nobody
//	    owes it anything, is never stuck. By an end of its own process a thread is not if it
//	    polls, or if the process catches signals or keeps a FIFO open both ways. Who has the
//	    other end of a file is a culprit only as for ordinary work (I7), or if it has owed an
//	    answer for MinWait and runs, or sleeps where no request can reach it (who runs has
//	    owed for so long if a connection lies there, or bytes of a process that has not run
//	    since; who only reads may be a subscriber); for a wait for
//	    room to write only as for ordinary work. A cycle is not sure that has a wait which
//	    is polled, is for a FIFO, a terminal or an event, is at an end of its own process, or
//	    may be ended by a signal handler.
package waitgraph
