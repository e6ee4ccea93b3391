//go:build linux

package userlab

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// onDisk gives a directory, which goes with the test, on a file system that can
// give up a page: not tmpfs or ramfs, which need swap for that.
func onDisk(tb testing.TB) string {
	tb.Helper()
	for _, parent := range []string{"", "/var/tmp", "."} {
		dir, err := os.MkdirTemp(parent, "userlab-disk-")
		if err != nil {
			continue
		}
		tb.Cleanup(func() { os.RemoveAll(dir) })
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) == nil && st.Type != unix.TMPFS_MAGIC && st.Type != unix.RAMFS_MAGIC {
			return dir
		}
	}
	if Guest() {
		tb.Skip("userlab: needs a disk: a guest has memory alone")
	}
	tb.Fatal("userlab: no directory on a disk: neither the temporary one, nor /var/tmp, nor the test's own")
	return ""
}
