//go:build linux

package testfiles

import (
	"fmt"
	"os"
	"testing"
	"time"

	"stackshot/internal/testneed"
)

// TestStands: each thread is in its call, at descriptors that its process and the holders
// have, and still is after a moment.
func TestStands(t *testing.T) {
	testneed.Live(t)
	f := Start(t)
	time.Sleep(50 * time.Millisecond) // time: the longer, the more it proves
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

// TestOrders: descriptors are closed, put elsewhere, sent and shared as ordered.
func TestOrders(t *testing.T) {
	testneed.Live(t)
	f := Start(t)
	end := f.Wait("pipe-writers").File[0].Ends[1] // b's
	name := func(p int, fd int) string {
		s, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p, fd))
		return s
	}
	pipe := name(f.B.Pid, end.Fd)
	f.B.Do(t, "send", end.Fd, f.Link.B)
	f.B.Do(t, "close", end.Fd)
	got := f.A.Do(t, "receive", f.Link.A)
	if name(f.A.Pid, got) != pipe || name(f.B.Pid, end.Fd) != "" {
		t.Errorf("sent %s, came %s, and there is still %s", pipe, name(f.A.Pid, got), name(f.B.Pid, end.Fd))
	}
	f.A.Do(t, "dup", 0, got)
	if name(f.A.Pid, got) != name(f.A.Pid, 0) {
		t.Error("not replaced")
	}
	twin := f.A.Do(t, "share")
	if name(twin, got) != name(f.A.Pid, 0) {
		t.Error("not shared")
	}
	f.A.Do(t, "close", got)
	if s := name(twin, got); s != "" {
		t.Errorf("not the same table: %s", s)
	}
}
