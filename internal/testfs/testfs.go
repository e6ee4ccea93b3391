//go:build linux

// Package testfs gives tests mounts and directories of their own.
package testfs

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

// WithMounts runs f on a thread with a mount namespace of its own: what f
// mounts is seen by the processes it starts and by nobody else, and is gone
// with the thread.
func WithMounts(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	testneed.Root(t)
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

// Mount mounts a file system, or ends the test.
func Mount(t *testing.T, source, dir, kind string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount(source, dir, kind, flags, data); err != nil {
		t.Fatalf("mount %s on %s: %v", kind, dir, err)
	}
}

// Only checks that a directory holds these files, by their names in order, and so no
// unfinished one.
func Only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, names)
	}
}
