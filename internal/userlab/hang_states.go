//go:build linux

package userlab

import "stackshot/internal/testtask"

// Where the parts of hang.c wait in the kernel. Functions of the scheduler and of locks
// are not in /proc/PID/stack, and some went by several names.
var (
	inFutex  = waitsIn("S", "futex_do_wait", "futex_wait_queue", "futex_wait_queue_me")
	inLockPI = waitsIn("S", "futex_lock_pi")
	inNap    = waitsIn("S", "hrtimer_nanosleep")
	inTrap   = waitsIn("t", "ptrace_stop", "ptrace_do_notify", "do_jobctl_trap", "get_signal")
	ended    = testtask.ThreadWant{States: "Z", NoStack: true}
)

func waitsIn(state string, functions ...string) testtask.ThreadWant {
	return testtask.ThreadWant{States: state, Stack: [][]string{functions}}
}

// hangsIn is the state of each role of a case; that of "" is everybody else's.
func hangsIn(name string) map[string]testtask.ThreadWant {
	m := map[string]testtask.ThreadWant{"": inFutex, "holder": inNap, "hangs": inNap, "thief": inNap, "tracer": inNap, "t4": inNap, "owner": ended}
	switch name {
	case "pi-chain":
		m[""] = inLockPI
	case "traced":
		m["holder"] = inTrap
	case "healthy":
		m[""] = testtask.ThreadWant{States: "SRD"}
	}
	return m
}
