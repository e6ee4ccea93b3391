package report

import "stackshot/kcdata"

// class is what a reader wants to know first about a thread. The order is the
// order of the report: what may be the trouble comes first.
type class int

const (
	classBlocked  class = iota // uninterruptible sleep: D
	classRunning               // on a CPU when the stop took it
	classRunnable              // waiting for a CPU
	classHeld                  // stopped, traced, frozen
	classSleeping              // interruptible
	classUnknown               // the file does not say
	classParked                // a parked kernel thread
	classIdle                  // TASK_IDLE: sleeps like D, counts for nothing
	classZombie                // zombie or dead
	classCPUIdle               // a CPU's idle thread
	classCount
)

// wantsCPU reports whether a thread of this class runs or would if it could.
func (c class) wantsCPU() bool { return c == classRunning || c == classRunnable }

// Bits of __state and exit_state. Those below stateFrozen have been what they
// are since 4.14; the freezer's came with commit f5d39b020809
// ("freezer,sched: Rewrite core freezer logic") in 6.1.
const (
	stateInterruptible   = 0x1
	stateUninterruptible = 0x2
	stateStopped         = 0x4
	stateTraced          = 0x8
	exitDead             = 0x10
	exitZombie           = 0x20
	stateParked          = 0x40
	stateDead            = 0x80
	stateWakekill        = 0x100
	stateWaking          = 0x200
	stateNoload          = 0x400
	stateNew             = 0x800
	stateRtlockWait      = 0x1000
	stateFrozen          = 0x8000

	flagKthread = 0x00200000 // PF_KTHREAD
)

// state is a thread's state in words; age tells the sentence it takes.
type state struct {
	class class
	words string
	since ageFrom
}

// ageFrom says which clock reading an age counts from.
type ageFrom int

const (
	ageNone    ageFrom = iota
	ageArrival         // since the thread last came onto a CPU
	ageQueued          // since it was last put on a runqueue
)

// stateOf decides a thread's class. A thread on a CPU is running whatever it
// was about to become; a zombie that still runs there is worth seeing.
func stateOf(t *kcdata.Thread) state {
	if t.IsIdle() {
		return state{classCPUIdle, "idle thread", ageNone}
	}
	if !t.HasLinux {
		return stateOfSnapshot(t)
	}
	l := &t.Linux
	onCPU := l.Present&kcdata.ThreadHasOnCPU != 0 && l.OnCPU != 0
	if onCPU {
		return state{classRunning, runningWords(l), ageArrival}
	}
	switch {
	case l.ExitState&exitZombie != 0:
		return state{classZombie, "zombie", ageNone}
	case l.ExitState&exitDead != 0 || l.State&stateDead != 0:
		return state{classZombie, "dead", ageNone}
	case l.State&stateNew != 0:
		return state{classRunnable, "being forked", ageNone}
	case l.State == 0 && l.Present&kcdata.ThreadHasOnCPU == 0:
		return state{classRunnable, "running or waiting for a CPU (R)", ageNone}
	case l.State == 0 || l.State&stateWaking != 0:
		return state{classRunnable, "runnable, waiting for a CPU", ageQueued}
	}
	return sleepOf(l.State)
}

func runningWords(l *kcdata.LinuxThread) string {
	switch {
	case l.ExitState != 0 || l.State&stateDead != 0:
		return "running (exiting)"
	case l.State&stateUninterruptible != 0 && l.State&stateNoload == 0:
		return "running (about to sleep in D)"
	case l.State&stateInterruptible != 0:
		return "running (about to sleep)"
	}
	return "running"
}

// sleepOf reads a state in which the thread is off its CPU and not runnable.
func sleepOf(s uint32) state {
	switch {
	case s&stateFrozen != 0:
		return state{classHeld, "frozen", ageArrival}
	case s&stateTraced != 0:
		return state{classHeld, "stopped by its tracer", ageArrival}
	case s&stateStopped != 0:
		return state{classHeld, "stopped by a signal", ageArrival}
	case s&stateParked != 0:
		return state{classParked, "parked", ageArrival}
	case s&stateRtlockWait != 0:
		return state{classBlocked, "waiting for a lock (D)", ageArrival}
	case s&stateUninterruptible != 0 && s&stateNoload != 0:
		return state{classIdle, "idle", ageArrival}
	case s&stateUninterruptible != 0 && s&stateWakekill != 0:
		return state{classBlocked, "uninterruptible sleep (D, killable)", ageArrival}
	case s&stateUninterruptible != 0:
		return state{classBlocked, "uninterruptible sleep (D)", ageArrival}
	case s&stateInterruptible != 0:
		return state{classSleeping, "sleeping", ageArrival}
	}
	return state{classUnknown, "in a state this program does not know", ageNone}
}

// Bits of ths_state, for files without the L records.
const (
	thWait, thSusp, thRun, thUnint, thTerminate = 0x1, 0x2, 0x4, 0x8, 0x10
	thOnCore                                    = 0x800 // of ths_ss_flags
)

func stateOfSnapshot(t *kcdata.Thread) state {
	switch s := t.Snapshot.State; {
	case !t.HasSnapshot:
		return state{classUnknown, "state not in the file", ageNone}
	case t.Snapshot.SSFlags&thOnCore != 0:
		return state{classRunning, "running", ageNone}
	case s&thTerminate != 0:
		return state{classZombie, "dead", ageNone}
	case s&thRun != 0:
		return state{classRunnable, "runnable, waiting for a CPU", ageNone}
	case s&thSusp != 0:
		return state{classHeld, "stopped by a signal", ageNone}
	case s&thWait != 0 && s&thUnint != 0:
		return state{classBlocked, "uninterruptible sleep (D)", ageNone}
	case s&thWait != 0:
		return state{classSleeping, "sleeping", ageNone}
	}
	return state{classUnknown, "in a state this program does not know", ageNone}
}

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
