package testtask

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// StartInTimeNamespace starts a command in a new time namespace whose clocks are
// ahead of the machine's by these offsets, at least a thread's age below 0. It
// needs root, CONFIG_TIME_NS and Linux 6.1 ("fs/exec: allow to unshare a time
// namespace on vfork+exec").
func StartInTimeNamespace(cmd *exec.Cmd, monotonic, boottime time.Duration) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: children of this thread alone are to be there
		done <- startInTimeNamespace(cmd, monotonic, boottime)
	}()
	return <-done
}

func startInTimeNamespace(cmd *exec.Cmd, monotonic, boottime time.Duration) error {
	if err := unix.Unshare(unix.CLONE_NEWTIME); err != nil {
		return fmt.Errorf("unshare a time namespace: %w", err)
	}
	text := offsetLine("monotonic", monotonic) + offsetLine("boottime", boottime)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/timens_offsets", unix.Gettid()), []byte(text), 0); err != nil {
		return err
	}
	return cmd.Start()
}

// offsetLine is a line of timens_offsets: the nanoseconds are never negative.
func offsetLine(clock string, d time.Duration) string {
	sec := d / time.Second
	if d%time.Second < 0 {
		sec--
	}
	return fmt.Sprintf("%s %d %d\n", clock, sec, d-sec*time.Second)
}
