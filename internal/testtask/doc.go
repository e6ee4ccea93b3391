// Package testtask puts real processes into known states, so that a test can
// hold a snapshot against something it knows to be true.
//
// A test package calls [MaybeRun] first thing in its TestMain. [Start] then
// runs the test binary once more as a stage: a Go process that forks one actor
// per role and exits. An actor is what fork(2) left of the stage: one thread,
// no Go runtime at work in it, every signal blocked, running a list of raw
// system calls that was written down before the fork. So its thread count, its
// system call and its kernel stack are exact, and five hundred of them cost
// next to nothing. More threads come from clone(2) in assembly; they share the
// leader's stack pointer and never touch the stack.
//
//	test process ──exec──► stage ──clone(CLONE_PARENT)──► actor, actor, ...
//	      │                  └ exits when all are made
//	      └ parent of every actor: only it can reap them
//
// A test then reads like this:
//
//	f := testtask.Start(t, testtask.FutexWait, testtask.ManyThreads(0))
//	for _, c := range f.Children {
//		for _, tid := range c.Tids {
//			// what the snapshot has of c.Pid and tid
//			err := c.Want.Of(c.Pid, tid).Check(state, stack)
//		}
//	}
//
// Invariants, each with a test of the same name:
//
//	I1. When Start returns, /proc agrees with every [Want].
//	I2. After the test's cleanup no actor is left, dead or alive.
//	I3. When the test process dies without cleanup, the kernel kills every actor.
//	    No actor watches for that: the read end of the life pipe carries
//	    O_ASYNC, F_SETSIG(SIGKILL) and F_SETOWN(the actors' process group), so
//	    closing the write end is the kill. Pdeathsig would not do: it fires when
//	    the starting thread ends, and Go ends threads as it likes. The first
//	    process of a pid namespace is exempt from such signals and reads the
//	    pipe instead; a stamper, which has left the group, asks who its parent is.
//	I4. Only processes that the stage made are ever signalled, each by its pid,
//	    and not after it has been reaped.
//	I5. A hog ends by its own clock.
//	I6. An actor that could not reach its state is named, with the step and the errno.
//
// # Held in exit
//
// Two ways to stop a task on its way out, on either side of exit_signals, which
// sets PF_EXITING:
//
// [TracedExit] stops at PTRACE_EVENT_EXIT: state t, in do_exit, SIGNAL_GROUP_EXIT
// set, but PF_EXITING not yet and the memory map still there. A dump that calls
// every task below do_exit "transitioning" is wrong here.
//
// [MidExit] is past it: state D, PF_EXITING set, exit_state still 0, memory map
// and file table gone. It holds the last reference to the read end of a pipe
// whose mutex another process owns, so its final fput waits in pipe_release.
// The owner is in the middle of write(2) to that pipe, its source page missing
// and registered with userfaultfd, which nobody serves. Killing the owner lets
// both go. The obvious other ways do not hold: userfaultfd refuses faults of a
// PF_EXITING task, and a lingering socket does not linger for one.
//
// A task that stays in state D for longer than kernel.hung_task_timeout_secs
// (120 s by default) is reported by the kernel, so [MidExit], [MutexWait], [InodeWait]
// and [VforkParent] are for tests shorter than that.
package testtask
