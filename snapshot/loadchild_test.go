package snapshot

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// loadChildEnv makes this test binary, started again, a process with generated
// code and, by its value, a perf map. It ends with its standard input.
const loadChildEnv = "STACKSHOT_TEST_LOAD_CHILD"

func init() {
	if what := os.Getenv(loadChildEnv); what != "" {
		if err := loadChild(what); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
}

// loadChild runs in a mount and a pid namespace of its own: it is number 1 there,
// and its /tmp is its own.
func loadChild(what string) error {
	err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("own", "/tmp", "tmpfs", 0, ""))
	if err != nil {
		return err
	}
	if _, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		return err
	}
	const path = "/tmp/perf-1.map"
	switch what {
	case "none":
		return nil
	case "fifo":
		return unix.Mkfifo(path, 0o600)
	case "link":
		return os.Symlink("/dev/zero", path)
	case "huge":
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 10<<30))
	}
	err = os.WriteFile(path, []byte("1000 10 f\n"), 0o600)
	if what == "others" {
		err = errors.Join(err, os.Chown(path, 12345, 12345))
	}
	return err
}

// startLoadChild starts one and waits until it is ready.
func startLoadChild(t *testing.T, what string) int {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), loadChildEnv+"="+what)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID}
	return startChild(t, cmd)
}

// startChild starts a process that says "ready" and ends with its standard input.
func startChild(t *testing.T, cmd *exec.Cmd) int {
	pid, _ := startTalking(t, cmd)
	return pid
}

// startTalking also gives a way to write to its standard input.
func startTalking(t *testing.T, cmd *exec.Cmd) (pid int, write func(string)) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return cmd.Process.Pid, func(s string) {
		if _, err := io.WriteString(in, s); err != nil {
			t.Error(err)
		}
	}
}
