//go:build unix

package testheap

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Mapped is anonymous memory outside the Go heap, as a mapped BPF map is; where there
// is no mmap, plain memory.
func Mapped(tb testing.TB, size int) []byte {
	tb.Helper()
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_SHARED)
	if err != nil {
		tb.Fatalf("mmap %d bytes: %v", size, err)
	}
	tb.Cleanup(func() {
		if err := unix.Munmap(m); err != nil {
			tb.Errorf("munmap: %v", err)
		}
	})
	return m
}
