package bumpalloc

import (
	"math"
	"testing"
)

// exhausted is an allocator of one cluster whose arena is used up: a spacer of
// 16 bytes lies between the blocks of the given sizes.
func exhausted(t *testing.T, opts []Option, sizes ...uint32) (*Allocator, []Block) {
	t.Helper()
	total := uint32(0)
	for _, s := range sizes {
		total += s + Align
	}
	a := newTest(t, 1, max(int(total), minArena), opts...)
	var blocks []Block
	for _, s := range sizes {
		blocks = append(blocks, mustAlloc(t, a, 0, s))
		mustAlloc(t, a, 0, Align)
	}
	if rest := a.size[0] - a.arenas[0].used.Load(); rest > 0 {
		mustAlloc(t, a, 0, rest)
	}
	return a, blocks
}

func freeAll(t *testing.T, a *Allocator, blocks []Block) {
	t.Helper()
	for _, b := range blocks {
		mustFree(t, a, 0, b)
	}
}

func TestBestFit(t *testing.T) {
	for _, c := range []struct {
		name      string
		sizes     []uint32 // freed in this order: the last is the first on the list
		low, want uint32
		from      int // index of the block that must serve
		len       uint32
	}{
		{"smallest that fits", []uint32{128, 96, 256}, 64, 64, 1, 64},
		{"exact", []uint32{256, 64, 96}, 64, 64, 1, 64},
		{"first exact of two", []uint32{64, 64}, 64, 64, 1, 64},
		{"rather large than short", []uint32{48, 256, 64}, 32, 96, 1, 96},
		{"largest of the short", []uint32{48, 80, 64}, 32, 96, 1, 80},
		{"rounding up", []uint32{48, 64}, 49, 49, 1, 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, blocks := exhausted(t, nil, c.sizes...)
			freeAll(t, a, blocks)
			got, err := a.AllocAtLeast(0, c.low, c.want)
			if err != nil {
				t.Fatal(err)
			}
			from := blocks[c.from]
			if want := (Block{from.Off + from.Len - c.len, c.len}); got != want {
				t.Errorf("got %+v, want %+v, the end of block %d", got, want, c.from)
			}
		})
	}
}

// An entry that could never be walked past proves where the walk stopped.
func TestExactFitStopsTheWalk(t *testing.T) {
	a, blocks := exhausted(t, nil, 64, 96)
	freeAll(t, a, blocks)
	*a.word(blocks[0].Off + 8) = 0 // second on the list: no entry any more
	if got := mustAlloc(t, a, 0, 96); got != blocks[1] {
		t.Fatalf("got %+v, want %+v", got, blocks[1])
	}
	_, err := a.Alloc(0, 64)
	wantErr(t, err, ErrCorrupt)
}

func TestRemainderStaysListed(t *testing.T) {
	a, blocks := exhausted(t, nil, 256)
	freeAll(t, a, blocks)
	for n := range 256 / Align {
		mustAlloc(t, a, 0, 1)
		if got, want := a.Stats(0).Free, uint64(256-(n+1)*Align); got != want {
			t.Fatalf("after %d pieces %d bytes are listed, want %d", n+1, got, want)
		}
	}
	if s := a.Stats(0); s.Entries != 0 || s.Overhead != 0 || a.arenas[0].head.Load() != 0 {
		t.Errorf("list is not empty: %+v", s)
	}
	_, err := a.Alloc(0, 1)
	wantErr(t, err, ErrNoSpace)
}

// Beyond the window the first fit wins, and what only the last entry can serve
// is still found.
func TestWindow(t *testing.T) {
	opts := []Option{WithWindow(2)}
	a, blocks := exhausted(t, opts, 64, 128, 256)
	freeAll(t, a, blocks)
	if got := mustAlloc(t, a, 0, 64); got.Off != blocks[1].Off+64 {
		t.Errorf("got %+v, want the best of the first two", got)
	}
	a, blocks = exhausted(t, opts, 256, 32, 32, 32)
	freeAll(t, a, blocks)
	if got := mustAlloc(t, a, 0, 256); got != blocks[0] {
		t.Errorf("got %+v, want %+v beyond the window", got, blocks[0])
	}
}

func TestInvariant5SliversAreOverhead(t *testing.T) {
	a, blocks := exhausted(t, nil, 64, 64, 64)
	mustFree(t, a, 0, Block{blocks[0].Off + 5, 59}) // grid from +16: 48 listed, 11 lost
	mustFree(t, a, 0, Block{blocks[1].Off + 56, 8}) // no room for a header
	mustFree(t, a, 0, Block{blocks[2].Off, 20})     // 16 listed, 4 lost
	mustFree(t, a, 0, Block{})
	s := a.Stats(0)
	if s.Free != 64 || s.Overhead != 59+8+20 || s.Lost() != 11+8+4 || s.Frees != 3 {
		t.Errorf("%+v, lost %d", s, s.Lost())
	}
	mustAlloc(t, a, 0, 48)
	if s := a.Stats(0); s.Overhead != 59+8+20-48 || s.Reused != 48 {
		t.Errorf("after reuse %+v", s)
	}
}

func TestFreeRefusesBlocks(t *testing.T) {
	a := newTest(t, 2, 256)
	b := mustAlloc(t, a, 0, 64)
	for _, bad := range []Block{
		{64, 16}, {0, 80}, {48, 32}, {128, 16}, {256, 16}, {math.MaxUint32, 16},
		{0, math.MaxUint32}, {math.MaxUint32, math.MaxUint32},
	} {
		wantErr(t, a.Free(0, bad), ErrBlock)
	}
	mustAlloc(t, a, 0, 64)
	mustAlloc(t, a, 1, 64)
	wantErr(t, a.Free(0, Block{96, 64}), ErrBlock) // across two arenas, both used
	mustFree(t, a, 0, b)
	before := a.Total()
	wantErr(t, a.Free(1, b), ErrDoubleFree)
	if after := a.Total(); after != before {
		t.Errorf("a refused Free changed the counters: %+v to %+v", before, after)
	}
	checkSums(t, a, 128)
}

// A lock that nobody releases ends in ErrBusy within the spin bound, another
// list still serves, and the bytes of a refused push are counted.
func TestInvariant6SpinIsBounded(t *testing.T) {
	a := newTest(t, 2, 256, WithSpin(100))
	x, y := mustAlloc(t, a, 0, 128), mustAlloc(t, a, 1, 128)
	mustFree(t, a, 0, Block{x.Off, 64})
	a.arenas[0].lock.Store(2)
	_, err := a.Alloc(0, 64)
	wantErr(t, err, ErrBusy)
	wantErr(t, a.Free(0, Block{x.Off + 64, 64}), ErrBusy)
	if s := a.Stats(0); s.Lost() != 64 || s.Busy != 2 {
		t.Errorf("lost %d busy %d, want 64 and 2", s.Lost(), s.Busy)
	}
	mustFree(t, a, 1, y)
	if got := mustAlloc(t, a, 0, 128); got != y {
		t.Errorf("got %+v, want %+v from the list that is not locked", got, y)
	}
	a.arenas[0].lock.Store(0)
	if got := mustAlloc(t, a, 0, 64); got != (Block{x.Off, 64}) {
		t.Errorf("got %+v after release", got)
	}
	checkSums(t, a, 192)
}

// A block that left the list is no entry any more, even if nobody wrote to it:
// it can be freed again, and a link that still names it is found out.
func TestInvariant7SealIsBroken(t *testing.T) {
	a, blocks := exhausted(t, nil, 64, 64)
	for range 3 {
		freeAll(t, a, blocks)
		mustAlloc(t, a, 0, 64)
		mustAlloc(t, a, 0, 64)
	}
	freeAll(t, a, blocks)
	gone := mustAlloc(t, a, 0, 64)
	a.arenas[0].head.Store(toLink(gone.Off))
	_, err := a.Alloc(0, 64)
	checkFault(t, err, badSeal, a)
}
