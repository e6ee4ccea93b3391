package model

import "stackshot/kcdata"

// State is what a thread is doing. Words is for readers; Since says from when its age counts.
type State struct {
	Class Class
	Words string
	Since Since
}

// StateOf returns the state of t. A thread on a CPU is running, whatever state it was about to
// enter: a zombie that still runs is worth seeing.
func StateOf(t *kcdata.Thread) State {
	if t.IsIdle() {
		return State{CPUIdle, "idle thread", SinceNever}
	}
	if !t.HasLinux {
		return stateOfSnapshot(t)
	}
	l := &t.Linux
	onCPU := l.Present&kcdata.ThreadHasOnCPU != 0 && l.OnCPU != 0
	if onCPU {
		if t.Sample != nil { // its __state was read at another moment than the sample
			return State{Running, "running", SinceArrival}
		}
		return State{Running, runningWords(l), SinceArrival}
	}
	switch {
	case l.ExitState&kcdata.ExitZombie != 0:
		return State{Zombie, zombieWords, SinceNever}
	case l.ExitState&kcdata.ExitDead != 0 || l.State&kcdata.StateDead != 0:
		return State{Zombie, deadWords, SinceNever}
	case l.State&kcdata.StateNew != 0:
		return State{Runnable, "being forked", SinceNever}
	case l.State == 0 && l.Present&kcdata.ThreadHasOnCPU == 0:
		return State{Runnable, "running or waiting for a CPU (R)", SinceNever}
	case l.State == 0 || l.State&kcdata.StateWaking != 0:
		return State{Runnable, "runnable, waiting for a CPU", SinceQueued}
	}
	return sleepOf(l.State)
}

func runningWords(l *kcdata.LinuxThread) string {
	switch {
	case l.ExitState != 0 || l.State&kcdata.StateDead != 0:
		return "running (exiting)"
	case l.State&kcdata.StateUninterruptible != 0 && l.State&kcdata.StateNoload == 0:
		return "running (about to sleep in D)"
	case l.State&kcdata.StateInterruptible != 0:
		return "running (about to sleep)"
	}
	return "running"
}

// sleepOf is the state of a thread that is off its CPU and not runnable; s is its __state.
func sleepOf(s uint32) State {
	switch {
	case s&kcdata.StateFrozen != 0:
		return State{Held, frozenWords, SinceSwitch}
	case s&kcdata.StateTraced != 0:
		return State{Held, tracedWords, SinceSwitch}
	case s&kcdata.StateStopped != 0:
		return State{Held, stoppedWords, SinceSwitch}
	case s&kcdata.StateParked != 0:
		return State{Parked, "parked", SinceSwitch}
	case s&kcdata.StateRtlockWait != 0:
		return State{Blocked, "waiting for a lock (D)", SinceSwitch}
	case s&kcdata.StateUninterruptible != 0 && s&kcdata.StateNoload != 0:
		return State{Idle, "idle", SinceSwitch}
	case s&kcdata.StateUninterruptible != 0 && s&kcdata.StateWakekill != 0:
		return State{Blocked, "uninterruptible sleep (D, killable)", SinceSwitch}
	case s&kcdata.StateUninterruptible != 0:
		return State{Blocked, "uninterruptible sleep (D)", SinceSwitch}
	case s&kcdata.StateInterruptible != 0:
		return State{Sleeping, "sleeping", SinceSwitch}
	}
	return State{Unknown, "in a state this program does not know", SinceNever}
}

// stateOfSnapshot is for files that hold only Apple's records.
func stateOfSnapshot(t *kcdata.Thread) State {
	switch s := t.Snapshot.State; {
	case !t.HasSnapshot:
		return State{Unknown, "state not in the file", SinceNever}
	case t.Snapshot.SSFlags&kcdata.SSOnCore != 0:
		return State{Running, "running", SinceNever}
	case s&kcdata.THTerminate != 0:
		return State{Zombie, deadWords, SinceNever}
	case s&kcdata.THRun != 0:
		return State{Runnable, "runnable, waiting for a CPU", SinceNever}
	case s&kcdata.THSusp != 0:
		return State{Held, stoppedWords, SinceNever}
	case s&kcdata.THWait != 0 && s&kcdata.THUnint != 0:
		return State{Blocked, "uninterruptible sleep (D)", SinceNever}
	case s&kcdata.THWait != 0:
		return State{Sleeping, "sleeping", SinceNever}
	}
	return State{Unknown, "in a state this program does not know", SinceNever}
}

// letters are the states in the letters of /proc/PID/stat (fs/proc/array.c,
// task_state_array). R and unknown letters are 0.
var letters = map[byte]struct{ state, exit uint32 }{
	'S': {state: kcdata.StateInterruptible},
	'D': {state: kcdata.StateUninterruptible},
	'T': {state: kcdata.StateStopped},
	't': {state: kcdata.StateTraced},
	'X': {exit: kcdata.ExitDead},
	'Z': {exit: kcdata.ExitZombie},
	'P': {state: kcdata.StateParked},
	'I': {state: kcdata.StateUninterruptible | kcdata.StateNoload},
}

// Words of the states that share a class.
const (
	zombieWords  = "zombie"
	deadWords    = "dead"
	frozenWords  = "frozen"
	tracedWords  = "stopped by its tracer"
	stoppedWords = "stopped by a signal"
)

// Letter is the state in the letter of /proc/PID/stat; "" if it has none of its own there (it is
// frozen, the thread is a CPU's idle thread), or is not known.
func (s State) Letter() string {
	switch s.Class {
	case Running, Runnable:
		return "R"
	case Sleeping:
		return "S"
	case Blocked:
		return "D"
	case Parked:
		return "P"
	case Idle:
		return "I"
	}
	return map[string]string{stoppedWords: "T", tracedWords: "t", zombieWords: "Z", deadWords: "X"}[s.Words]
}

// StateOfLetter turns /proc's letter into LinuxThread.State and LinuxThread.ExitState.
func StateOfLetter(letter byte) (state, exit uint32) {
	return letters[letter].state, letters[letter].exit
}

// XNUState is the ThreadSnapshot.State for a LinuxThread.State and LinuxThread.ExitState. It
// does the same as xnu_state of record_thread.h does in the kernel.
func XNUState(state, exit uint32) uint32 {
	switch {
	case exit != 0:
		return kcdata.THTerminate
	case state == 0:
		return kcdata.THRun
	}
	s := uint32(kcdata.THWait)
	if state&(kcdata.StateStopped|kcdata.StateTraced) != 0 {
		s |= kcdata.THSusp
	}
	if state&kcdata.StateUninterruptible != 0 && state&kcdata.StateNoload == 0 {
		s |= kcdata.THUnint
	}
	return s
}
