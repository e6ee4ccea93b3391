package latency

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
		{"on a CPU", kcdata.LinuxThread{Present: known, OnCPU: 1}, ClassRunning, "running"},
		{"on a CPU, about to block", kcdata.LinuxThread{Present: known, OnCPU: 1, State: 2}, ClassRunning, "running (about to sleep in D)"},
		{"on a CPU, about to idle", kcdata.LinuxThread{Present: known, OnCPU: 1, State: 0x402}, ClassRunning, "running"},
		{"on a CPU, dead", kcdata.LinuxThread{Present: known, OnCPU: 1, State: 0x80}, ClassRunning, "running (exiting)"},
		{"runnable", kcdata.LinuxThread{Present: known}, ClassRunnable, "runnable, waiting for a CPU"},
		{"R, not known which", kcdata.LinuxThread{}, ClassRunnable, "running or waiting for a CPU (R)"},
		{"waking", kcdata.LinuxThread{Present: known, State: 0x200}, ClassRunnable, "runnable, waiting for a CPU"},
		{"new", kcdata.LinuxThread{Present: known, State: 0x800}, ClassRunnable, "being forked"},
		{"sleeping, freezable", kcdata.LinuxThread{Present: known, State: 0x2001}, ClassSleeping, "sleeping"},
		{"D", kcdata.LinuxThread{Present: known, State: 2}, ClassBlocked, "uninterruptible sleep (D)"},
		{"D, freezable", kcdata.LinuxThread{Present: known, State: 0x2002}, ClassBlocked, "uninterruptible sleep (D)"},
		{"killable", kcdata.LinuxThread{Present: known, State: 0x102}, ClassBlocked, "uninterruptible sleep (D, killable)"},
		{"TASK_IDLE", kcdata.LinuxThread{Present: known, State: 0x402}, ClassIdle, "idle"},
		{"stopped", kcdata.LinuxThread{Present: known, State: 0x104}, ClassHeld, "stopped by a signal"},
		{"traced", kcdata.LinuxThread{Present: known, State: 0x108}, ClassHeld, "stopped by its tracer"},
		{"parked", kcdata.LinuxThread{Present: known, State: 0x40}, ClassParked, "parked"},
		{"zombie", kcdata.LinuxThread{Present: known, State: 0x80, ExitState: 0x20}, ClassZombie, "zombie"},
		{"reaped", kcdata.LinuxThread{Present: known, State: 0x80, ExitState: 0x10}, ClassZombie, "dead"},
		{"idle thread", kcdata.LinuxThread{Present: known | kcdata.ThreadIsIdle, OnCPU: 1}, ClassCPUIdle, "idle thread"},
	} {
		got := StateOf(&kcdata.Thread{HasLinux: true, Linux: c.l})
		if got.Class != c.class || got.Words != c.words {
			t.Errorf("%s: class %d %q, want %d %q", c.name, got.Class, got.Words, c.class, c.words)
		}
	}
}
