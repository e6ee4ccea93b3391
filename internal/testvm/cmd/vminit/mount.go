package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mounts are in the order in which they depend on each other. One that this
// kernel lacks is reported and left out.
var mounts = []struct{ what, where string }{
	{"proc", "/proc"},
	{"sysfs", "/sys"},
	{"devtmpfs", "/dev"},
	{"devpts", "/dev/pts"},
	{"tmpfs", "/dev/shm"},
	{"bpf", "/sys/fs/bpf"},
	{"tracefs", "/sys/kernel/tracing"},
	{"debugfs", "/sys/kernel/debug"},
	{"securityfs", "/sys/kernel/security"},
	{"cgroup2", "/sys/fs/cgroup"},
	{"tmpfs", "/run"},
	{"tmpfs", "/tmp"},
}

func mountAll() error {
	var all error
	for _, m := range mounts {
		// sysfs makes its own mount points; there mkdir fails and need not work.
		os.MkdirAll(m.where, 0o755)
		if err := unix.Mount(m.what, m.where, m.what, 0, ""); err != nil {
			all = errors.Join(all, fmt.Errorf("mount %s on %s: %w", m.what, m.where, err))
		}
	}
	if err := os.Chmod("/tmp", os.ModeSticky|0o777); err != nil {
		all = errors.Join(all, err)
	}
	return all
}
