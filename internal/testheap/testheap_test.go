package testheap

import (
	"testing"

	"stackshot/internal/testneed"
)

var sink []byte

// What is thrown away piece by piece does not count, what is held does.
func TestGrowth(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	if n := Growth(func() {
		for range 1024 {
			sink = make([]byte, 1<<20)
		}
	}); n > 64<<20 {
		t.Errorf("a GiB of garbage grew the heap by %d MiB", n>>20)
	}
	held := make([][]byte, 0, 256)
	if n := Growth(func() {
		for range cap(held) {
			held = append(held, make([]byte, 1<<20))
		}
	}); n < 128<<20 {
		t.Errorf("%d MiB that are held grew the heap by %d MiB", len(held), n>>20)
	}
}
