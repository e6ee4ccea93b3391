//go:build linux && (amd64 || arm64)

package hangscenes

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
)

func noFUSE() string {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return "this kernel has no FUSE"
	}
	return ""
}

func noRuntimes() string {
	if missing := testneed.Missing(userlab.RuntimePrograms...); len(missing) > 0 {
		return "no " + strings.Join(missing, ", ")
	}
	return ""
}

func noSlowDisk() string {
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return "this kernel has no loop devices"
	}
	if diskController() != "" {
		return ""
	}
	return "no control groups with a limit of a disk's bytes"
}

func noRoomForThreads() string {
	for _, name := range []string{"pid_max", "threads-max"} {
		b, _ := os.ReadFile("/proc/sys/kernel/" + name)
		if n, _ := strconv.Atoi(strings.TrimSpace(string(b))); n < Leaked()+4000 {
			return fmt.Sprintf("kernel.%s is %d", name, n)
		}
	}
	return ""
}

// diskController is what the versions of control groups call it.
func diskController() string {
	for _, name := range []string{"blkio", "io"} {
		if root, _ := hierarchy(name); root != "" {
			return name
		}
	}
	return ""
}
