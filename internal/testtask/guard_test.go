//go:build linux && (amd64 || arm64)

package testtask

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

const guardedEnv = "STACKSHOT_TESTTASK_GUARDED" // the file, in the process to be killed

func says(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestGuardRestores(t *testing.T) {
	testneed.Live(t)
	path := filepath.Join(t.TempDir(), "a=switch")
	g, err := NewGuard(path, "1")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(g.cmd.Process.Pid, unix.SIGTERM); err != nil { // as to all that a terminal started
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // time: the longer, the more it proves
	if got := says(t, path); got != "0" {
		t.Fatalf("%q before it is told to", got)
	}
	for range 2 {
		if err := g.Restore(); err != nil {
			t.Error(err)
		}
	}
	if got := says(t, path); got != "1" {
		t.Errorf("%q in the end", got)
	}
}

// What cannot be written is an error.
func TestGuardFails(t *testing.T) {
	g, err := NewGuard(filepath.Join(t.TempDir(), "none", "switch"), "1")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Restore(); err == nil {
		t.Error("no error of a file in no directory")
	}
}

// The process that changed the file is killed with all its process group, and
// changes nothing back.
func TestGuardOutlivesItsProcess(t *testing.T) {
	testneed.Live(t)
	if path := os.Getenv(guardedEnv); path != "" {
		if _, err := NewGuard(path, "1"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("0"), 0o600); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("ready")
		unix.Pause() // until it is killed
		return
	}
	path := filepath.Join(t.TempDir(), "switch")
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestGuardOutlivesItsProcess$")
	cmd.Env = append(os.Environ(), guardedEnv+"="+path)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready"))); err != nil {
		t.Error(err)
	}
	if err := unix.Kill(-cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Error(err)
	}
	cmd.Wait()
	if err := WaitFor(10*time.Second, func() (bool, error) { return says(t, path) == "1", nil }); err != nil {
		t.Errorf("%q: %v", says(t, path), err)
	}
}
