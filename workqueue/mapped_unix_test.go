//go:build unix

package workqueue

import (
	"testing"

	"golang.org/x/sys/unix"
)

// mapped is anonymous memory outside the Go heap, as a mapped BPF map is.
func mapped(t testing.TB, size int) []byte {
	t.Helper()
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_SHARED)
	if err != nil {
		t.Fatalf("mmap %d bytes: %v", size, err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(m); err != nil {
			t.Errorf("munmap: %v", err)
		}
	})
	return m
}
