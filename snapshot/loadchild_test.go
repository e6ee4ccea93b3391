package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
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
	cmd := again(nil, loadChildEnv+"="+what)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID}
	return startChild(t, cmd, "ready").pid
}
