package report

import (
	"stackshot/internal/latency"
	"stackshot/kcdata"
)

// class is latency.Class, with what only the reports ask of it.
type class latency.Class

const (
	classBlocked  = class(latency.ClassBlocked)
	classRunning  = class(latency.ClassRunning)
	classRunnable = class(latency.ClassRunnable)
	classHeld     = class(latency.ClassHeld)
	classSleeping = class(latency.ClassSleeping)
	classUnknown  = class(latency.ClassUnknown)
	classParked   = class(latency.ClassParked)
	classIdle     = class(latency.ClassIdle)
	classZombie   = class(latency.ClassZombie)
	classCPUIdle  = class(latency.ClassCPUIdle)
	classCount    = class(latency.ClassCount)
)

// wantsCPU reports whether a thread of this class runs or would if it could.
func (c class) wantsCPU() bool { return c == classRunning || c == classRunnable }

// state is a thread's state in words; since tells what its age counts from.
type state struct {
	class class
	words string
	since latency.Since
}

func stateOf(t *kcdata.Thread) state {
	s := latency.StateOf(t)
	return state{class(s.Class), s.Words, s.Since}
}

const flagKthread = 0x00200000 // PF_KTHREAD

// isKernel reports whether a thread has no user space.
func isKernel(task *kcdata.Task, t *kcdata.Thread) bool {
	return task.IsKernel() || t.HasLinux && t.Linux.Flags&flagKthread != 0
}

// isIdleKernel reports whether t is a kernel thread in its ordinary sleep. All
// of them wait for work interruptibly or as TASK_IDLE: a kernel thread in D
// waits for something it needs, and one that runs has work.
func isIdleKernel(task *kcdata.Task, t *kcdata.Thread, c class) bool {
	return isKernel(task, t) && (c == classSleeping || c == classIdle || c == classParked)
}
