// Package userlab makes the processes by which user stacks are judged, asks gdb
// for theirs, and compares. It is for tests only. What it starts are real
// programs, built from testdata by the compilers of the machine; processes that
// need no program come from [stackshot/internal/testtask].
//
//	sources ──gcc, rustc, go, ...──► programs ──► Process ──Stop──► gdb ─► []Thread ─┐
//	                                                 └──► what is tested ─► []Stack ─┴► Judge ─► Verdict
//
// A test reads like this:
//
//	lab := userlab.Start(t)
//	for _, p := range lab.Processes {
//		p.Stop() // by SIGSTOP
//		// the capture, with p.Pid in it
//		witness, err := userlab.Witness(p.Pid)
//		verdicts = append(verdicts, userlab.Judge(p.Name, witness, ours))
//	}
//	sum := userlab.Total(verdicts)
//
// [Hangs] starts processes that hang, or only look as if.
//
// Invariants:
//
//	U1. When a process is handed out, it has said so itself and /proc agrees:
//	    every thread but the stated spinners sleeps.
//	U2. After the test's cleanup none is left, what it forked included.
//	U3. When the test process dies without cleanup, the kernel kills them all:
//	    each holds the read end of its life pipe, with O_ASYNC, F_SETSIG(SIGKILL)
//	    and F_SETOWN(its process group). The same ends it in the cleanup, so no
//	    signal is ever sent to a number that may have another owner.
//	U4. A fixture that waits in the kernel for somebody waits for a FUSE file of
//	    the test process. That one's end, or [StalledFS.Release], lets it go on.
//
// A task that stays in state D for longer than kernel.hung_task_timeout_secs
// (120 s by default) is reported by the kernel: [LockedMap] and [SlowExec] are
// for tests shorter than that.
package userlab
