package model

import (
	"testing"

	"stackshot/kcdata"
)

func TestStateOf(t *testing.T) {
	const known = kcdata.ThreadHasOnCPU
	for _, c := range []struct {
		name  string
		l     kcdata.LinuxThread
		class Class
		words string
	}{
		{"on a CPU", kcdata.LinuxThread{Present: known, OnCPU: 1}, Running, "running"},
		{"on a CPU, about to block", kcdata.LinuxThread{Present: known, OnCPU: 1, State: 2}, Running, "running (about to sleep in D)"},
		{"on a CPU, about to idle", kcdata.LinuxThread{Present: known, OnCPU: 1, State: 0x402}, Running, "running"},
		{"on a CPU, dead", kcdata.LinuxThread{Present: known, OnCPU: 1, State: 0x80}, Running, "running (exiting)"},
		{"runnable", kcdata.LinuxThread{Present: known}, Runnable, "runnable, waiting for a CPU"},
		{"R, not known which", kcdata.LinuxThread{}, Runnable, "running or waiting for a CPU (R)"},
		{"waking", kcdata.LinuxThread{Present: known, State: 0x200}, Runnable, "runnable, waiting for a CPU"},
		{"new", kcdata.LinuxThread{Present: known, State: 0x800}, Runnable, "being forked"},
		{"sleeping, freezable", kcdata.LinuxThread{Present: known, State: 0x2001}, Sleeping, "sleeping"},
		{"D", kcdata.LinuxThread{Present: known, State: 2}, Blocked, "uninterruptible sleep (D)"},
		{"D, freezable", kcdata.LinuxThread{Present: known, State: 0x2002}, Blocked, "uninterruptible sleep (D)"},
		{"killable", kcdata.LinuxThread{Present: known, State: 0x102}, Blocked, "uninterruptible sleep (D, killable)"},
		{"TASK_IDLE", kcdata.LinuxThread{Present: known, State: 0x402}, Idle, "idle"},
		{"stopped", kcdata.LinuxThread{Present: known, State: 0x104}, Held, "stopped by a signal"},
		{"traced", kcdata.LinuxThread{Present: known, State: 0x108}, Held, "stopped by its tracer"},
		{"parked", kcdata.LinuxThread{Present: known, State: 0x40}, Parked, "parked"},
		{"zombie", kcdata.LinuxThread{Present: known, State: 0x80, ExitState: 0x20}, Zombie, "zombie"},
		{"reaped", kcdata.LinuxThread{Present: known, State: 0x80, ExitState: 0x10}, Zombie, "dead"},
		{"idle thread", kcdata.LinuxThread{Present: known | kcdata.ThreadIsIdle, OnCPU: 1}, CPUIdle, "idle thread"},
	} {
		got := StateOf(&kcdata.Thread{HasLinux: true, Linux: c.l})
		if got.Class != c.class || got.Words != c.words {
			t.Errorf("%s: class %d %q, want %d %q", c.name, got.Class, got.Words, c.class, c.words)
		}
	}
}

// What /proc's letter says, the kernel's own bits and Apple's state say, too.
func TestLettersAgree(t *testing.T) {
	for letter, want := range map[byte][2]Class{ // by the Linux record, by Apple's
		'R': {Runnable, Runnable}, 'S': {Sleeping, Sleeping}, 'D': {Blocked, Blocked}, 'T': {Held, Held}, 't': {Held, Held},
		'X': {Zombie, Zombie}, 'Z': {Zombie, Zombie}, 'P': {Parked, Sleeping}, 'I': {Idle, Sleeping}, '?': {Runnable, Runnable},
	} {
		th := kcdata.Thread{HasLinux: true, HasSnapshot: true}
		th.Linux.State, th.Linux.ExitState = StateOfLetter(letter)
		th.Snapshot.State = XNUState(th.Linux.State, th.Linux.ExitState)
		linux := StateOf(&th).Class
		th.HasLinux = false
		if apple := StateOf(&th).Class; linux != want[0] || apple != want[1] {
			t.Errorf("%c: %v by the Linux record and %v by Apple's, want %v", letter, linux, apple, want)
		}
	}
}
