package bumpalloc

import (
	"math"
	"testing"
	"unsafe"
)

// The drawing in doc.go, by hand.
func TestInvariant1Layout(t *testing.T) {
	var h header
	var w arena
	for _, c := range []struct {
		field     string
		got, want uintptr
	}{
		{"header.magic", unsafe.Offsetof(h.magic), 0},
		{"header.version", unsafe.Offsetof(h.version), 4},
		{"header.clusters", unsafe.Offsetof(h.clusters), 8},
		{"header.epoch", unsafe.Offsetof(h.epoch), 12},
		{"header.data_size", unsafe.Offsetof(h.dataSize), 16},
		{"sizeof header", unsafe.Sizeof(h), 128},
		{"arena.base", unsafe.Offsetof(w.base), 0},
		{"arena.size", unsafe.Offsetof(w.size), 4},
		{"arena.used", unsafe.Offsetof(w.used), 128},
		{"arena.spilled", unsafe.Offsetof(w.spilled), 136},
		{"arena.lock", unsafe.Offsetof(w.lock), 256},
		{"arena.head", unsafe.Offsetof(w.head), 260},
		{"arena.entries", unsafe.Offsetof(w.entries), 264},
		{"arena.listed", unsafe.Offsetof(w.listed), 272},
		{"arena.reused", unsafe.Offsetof(w.reused), 280},
		{"arena.fault", unsafe.Offsetof(w.fault), 288},
		{"arena.allocs", unsafe.Offsetof(w.allocs), 384},
		{"arena.frees", unsafe.Offsetof(w.frees), 392},
		{"arena.freed", unsafe.Offsetof(w.freed), 400},
		{"arena.spill", unsafe.Offsetof(w.spill), 408},
		{"arena.foreign", unsafe.Offsetof(w.foreign), 416},
		{"arena.busy", unsafe.Offsetof(w.busy), 424},
		{"arena.refused", unsafe.Offsetof(w.refused), 432},
		{"sizeof arena", unsafe.Sizeof(w), 512},
		{"entry and grid", entrySize, Align},
		{"ControlSize(3)", uintptr(ControlSize(3)), 128 + 3*512},
	} {
		if c.got != c.want {
			t.Errorf("%s at %d, want %d", c.field, c.got, c.want)
		}
	}
}

func TestControlSizeOutOfRange(t *testing.T) {
	for _, n := range []int{math.MinInt, -1, 0, MaxClusters + 1, math.MaxInt} {
		if got := ControlSize(n); got != 0 {
			t.Errorf("ControlSize(%d) = %d, want 0", n, got)
		}
	}
}

// What the in-kernel engine reads must be what Go computed.
func TestNewPublishesConstants(t *testing.T) {
	a := newTest(t, 3, 1000)
	if a.head.magic.Load() != layoutMagic || a.head.version.Load() != layoutVersion ||
		a.head.clusters.Load() != 3 || a.head.dataSize.Load() != 992 {
		t.Fatal("header is not what New was given")
	}
	end := uint32(0)
	for i, w := range a.arenas {
		if w.base.Load() != end || w.size.Load() != a.size[i] || end%Align != 0 {
			t.Fatalf("arena %d starts at %d, want %d", i, w.base.Load(), end)
		}
		end += w.size.Load()
	}
	if end != 992 {
		t.Fatalf("arenas cover %d bytes, want 992", end)
	}
}

// The entry that doc.go spells out byte by byte.
func TestEntryByHand(t *testing.T) {
	a := newTest(t, 1, 256)
	mustAlloc(t, a, 0, 256)
	mustFree(t, a, 0, Block{0, 32})
	mustFree(t, a, 0, Block{0x60, 64})
	want := [2]uint64{0x40_0000_0001, 0x7a11ed01_00000061}
	if got := [2]uint64{*a.word(0x60), *a.word(0x68)}; got != want {
		t.Errorf("entry %#x, want %#x", got, want)
	}
}
