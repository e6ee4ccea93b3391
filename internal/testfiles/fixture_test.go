//go:build linux

package testfiles

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// TestStands: each thread is in its call, at descriptors that its process and the holders
// have, and still is after a moment.
func TestStands(t *testing.T) {
	f := Start(t)
	time.Sleep(50 * time.Millisecond)
	for _, w := range f.Waits {
		w.settle(t)
		for _, file := range w.File {
			wantOpen(t, w.Name, f.Waiter.Pid, file.Fd)
			for _, e := range file.Ends {
				wantOpen(t, w.Name, e.Process.Pid, e.Fd)
			}
		}
	}
	if len(f.Waits) < 30 || f.Wait("epoll").Tid == f.Wait("poll").Tid {
		t.Errorf("%d waits", len(f.Waits))
	}
}

func wantOpen(t *testing.T, name string, pid, fd int) {
	t.Helper()
	if _, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}
