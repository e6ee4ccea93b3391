//go:build linux

package testfiles

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// FdInfo is /proc/PID/fdinfo/FD.
type FdInfo struct {
	Flags   uint32 // of open(2)
	Inode   uint64
	Targets []int    // an epoll's
	Locks   []string // "FLOCK  ADVISORY  WRITE 13001 fe:00:9978251 0 EOF"
	Count   uint64   // an eventfd's
	Pid     int      // a pidfd's
}

// ReadFdInfo reads one.
func ReadFdInfo(tb testing.TB, pid, fd int) FdInfo {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, fd))
	if err != nil {
		tb.Fatal(err)
	}
	info, err := parseFdInfo(string(text))
	if err != nil {
		tb.Fatalf("fdinfo of %d, %d: %v", pid, fd, err)
	}
	return info
}

func parseFdInfo(text string) (info FdInfo, err error) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		var n uint64
		switch key {
		case "flags":
			n, err = strconv.ParseUint(value, 8, 32)
			info.Flags = uint32(n)
		case "ino":
			info.Inode, err = strconv.ParseUint(value, 10, 64)
		case "eventfd-count":
			info.Count, err = strconv.ParseUint(value, 16, 64)
		case "Pid":
			info.Pid, err = strconv.Atoi(value)
		case "tfd":
			var fd int
			_, err = fmt.Sscan(value, &fd)
			info.Targets = append(info.Targets, fd)
		case "lock":
			_, lock, _ := strings.Cut(value, ": ")
			info.Locks = append(info.Locks, lock)
		}
		if err != nil {
			return info, fmt.Errorf("%q: %w", line, err)
		}
	}
	return info, nil
}
