package main

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// fullPipe is one that takes nothing more and that nobody reads.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	r, w := os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	for {
		if _, err := unix.Write(fds[1], make([]byte, 4096)); errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	if err := unix.SetNonblock(fds[1], false); err != nil { // for the command, which has it too
		t.Fatal(err)
	}
	return w
}

// Whoever does not read the report, or what is said, costs neither the file nor the
// answer to a signal.
func TestNobodyReads(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	t.Parallel()
	needRoot(t)
	for name, args := range map[string][]string{"report": nil, "json": {"--json"}, "messages": {"--self"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := t.TempDir() + "/file"
			cmd := exec.Command(program, patient(t, append([]string{"take", "--engine", "procfs", "-o", file}, args...)...)...)
			if cmd.Stdout = fullPipe(t); name == "messages" {
				cmd.Stdout, cmd.Stderr = nil, fullPipe(t)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			err := testtask.WaitFor(20*time.Second, func() (bool, error) {
				_, err := os.Lstat(file)
				return err == nil, nil
			})
			if err != nil {
				t.Error("no file:", err)
			}
			time.Sleep(300 * time.Millisecond) // until it says so
			cmd.Process.Signal(unix.SIGTERM)
			began := time.Now()
			limit := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
			defer limit.Stop()
			cmd.Wait()
			if d := time.Since(began); d > 10*time.Second || cmd.ProcessState.ExitCode() < 0 {
				t.Errorf("after the signal: %v, %v", d, cmd.ProcessState)
			}
			mode0600(t, file)
		})
	}
}
