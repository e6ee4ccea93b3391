package latency

import "stackshot/kcdata"

// Class is what a reader wants to know first about a thread. The order is the
// order of the report: what may be the trouble comes first.
type Class int

const (
	ClassBlocked  Class = iota // uninterruptible sleep: D
	ClassRunning               // on a CPU when the stop took it
	ClassRunnable              // waiting for a CPU
	ClassHeld                  // stopped, traced, frozen
	ClassSleeping              // interruptible
	ClassUnknown               // the file does not say
	ClassParked                // a parked kernel thread
	ClassIdle                  // TASK_IDLE: sleeps like D, counts for nothing
	ClassZombie                // zombie or dead
	ClassCPUIdle               // a CPU's idle thread
	ClassCount
)

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
)

// State is a thread's state in words; Since tells what an age counts from.
type State struct {
	Class Class
	Words string
	Since Since
}

// StateOf decides a thread's class. A thread on a CPU is running whatever it
// was about to become; a zombie that still runs there is worth seeing.
func StateOf(t *kcdata.Thread) State {
	if t.IsIdle() {
		return State{ClassCPUIdle, "idle thread", SinceNever}
	}
	if !t.HasLinux {
		return stateOfSnapshot(t)
	}
	l := &t.Linux
	onCPU := l.Present&kcdata.ThreadHasOnCPU != 0 && l.OnCPU != 0
	if onCPU {
		if t.Sample != nil { // what it was about to do was read at another moment
			return State{ClassRunning, "running", SinceArrival}
		}
		return State{ClassRunning, runningWords(l), SinceArrival}
	}
	switch {
	case l.ExitState&exitZombie != 0:
		return State{ClassZombie, "zombie", SinceNever}
	case l.ExitState&exitDead != 0 || l.State&stateDead != 0:
		return State{ClassZombie, "dead", SinceNever}
	case l.State&stateNew != 0:
		return State{ClassRunnable, "being forked", SinceNever}
	case l.State == 0 && l.Present&kcdata.ThreadHasOnCPU == 0:
		return State{ClassRunnable, "running or waiting for a CPU (R)", SinceNever}
	case l.State == 0 || l.State&stateWaking != 0:
		return State{ClassRunnable, "runnable, waiting for a CPU", SinceQueued}
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
func sleepOf(s uint32) State {
	switch {
	case s&stateFrozen != 0:
		return State{ClassHeld, "frozen", SinceSwitch}
	case s&stateTraced != 0:
		return State{ClassHeld, "stopped by its tracer", SinceSwitch}
	case s&stateStopped != 0:
		return State{ClassHeld, "stopped by a signal", SinceSwitch}
	case s&stateParked != 0:
		return State{ClassParked, "parked", SinceSwitch}
	case s&stateRtlockWait != 0:
		return State{ClassBlocked, "waiting for a lock (D)", SinceSwitch}
	case s&stateUninterruptible != 0 && s&stateNoload != 0:
		return State{ClassIdle, "idle", SinceSwitch}
	case s&stateUninterruptible != 0 && s&stateWakekill != 0:
		return State{ClassBlocked, "uninterruptible sleep (D, killable)", SinceSwitch}
	case s&stateUninterruptible != 0:
		return State{ClassBlocked, "uninterruptible sleep (D)", SinceSwitch}
	case s&stateInterruptible != 0:
		return State{ClassSleeping, "sleeping", SinceSwitch}
	}
	return State{ClassUnknown, "in a state this program does not know", SinceNever}
}

// Bits of ths_state, for files without the L records.
const (
	thWait, thSusp, thRun, thUnint, thTerminate = 0x1, 0x2, 0x4, 0x8, 0x10
	thOnCore                                    = 0x800 // of ths_ss_flags
)

func stateOfSnapshot(t *kcdata.Thread) State {
	switch s := t.Snapshot.State; {
	case !t.HasSnapshot:
		return State{ClassUnknown, "state not in the file", SinceNever}
	case t.Snapshot.SSFlags&thOnCore != 0:
		return State{ClassRunning, "running", SinceNever}
	case s&thTerminate != 0:
		return State{ClassZombie, "dead", SinceNever}
	case s&thRun != 0:
		return State{ClassRunnable, "runnable, waiting for a CPU", SinceNever}
	case s&thSusp != 0:
		return State{ClassHeld, "stopped by a signal", SinceNever}
	case s&thWait != 0 && s&thUnint != 0:
		return State{ClassBlocked, "uninterruptible sleep (D)", SinceNever}
	case s&thWait != 0:
		return State{ClassSleeping, "sleeping", SinceNever}
	}
	return State{ClassUnknown, "in a state this program does not know", SinceNever}
}
