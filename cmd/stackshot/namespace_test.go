package main

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// withMounts runs f on a thread with a mount namespace of its own: what f
// mounts is seen by the processes it starts and by nobody else, and is gone
// with the thread.
func withMounts(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	needRoot(t)
	done := make(chan struct{})
	go func() {
		defer close(done)      // also where f ends in t.FailNow
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			t.Errorf("unshare: %v", err)
			return
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Errorf("make / private: %v", err)
			return
		}
		f(t)
	}()
	<-done
}

func mount(t *testing.T, source, dir, kind string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount(source, dir, kind, flags, data); err != nil {
		t.Fatalf("mount %s on %s: %v", kind, dir, err)
	}
}
