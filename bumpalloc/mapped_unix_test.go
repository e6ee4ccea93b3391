//go:build unix

package bumpalloc

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

// Control words and data in one mapping, as in one map value.
func TestOneMapping(t *testing.T) {
	m := mapped(t, 64<<10)
	n := ControlSize(2)
	a, err := New(m[:n], m[n:], 2)
	if err != nil {
		t.Fatal(err)
	}
	b := mustAlloc(t, a, 1, 4096)
	copy(a.Bytes(b), "seen through the mapping")
	if at := n + int(b.Off); string(m[at:at+4]) != "seen" {
		t.Errorf("block %+v is not at %d of the mapping", b, at)
	}
}
