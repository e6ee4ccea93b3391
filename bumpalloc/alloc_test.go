package bumpalloc

import (
	"math"
	"strings"
	"testing"

	"stackshot/internal/testheap"
)

func TestNewRefuses(t *testing.T) {
	ctl, data := make([]byte, ControlSize(4)), make([]byte, 4096)
	for _, c := range []struct {
		name      string
		ctl, data []byte
		clusters  int
		want      error
	}{
		{"no cluster", ctl, data, 0, ErrCluster},
		{"negative", ctl, data, -1, ErrCluster},
		{"preposterous", ctl, data, math.MaxInt, ErrCluster},
		{"control short by one", ctl[:len(ctl)-1], data, 4, ErrMemory},
		{"no control", nil, data, 1, ErrMemory},
		{"control misaligned", ctl[4:], data, 1, ErrMemory},
		{"no data", ctl, nil, 1, ErrMemory},
		{"data short by one", ctl, data[:4*minArena-1], 4, ErrMemory},
		{"data misaligned", ctl, data[8:], 4, ErrMemory},
	} {
		a, err := New(c.ctl, c.data, c.clusters)
		wantErr(t, err, c.want)
		if a != nil {
			t.Errorf("%s: an allocator beside an error", c.name)
		}
	}
}

func TestAllocRefusesSizes(t *testing.T) {
	a := newTest(t, 2, 1024)
	negative := -1
	for _, c := range []struct {
		low, want uint32
		err       error
	}{
		{0, 0, ErrSize},
		{0, 16, ErrSize},
		{32, 16, ErrSize},
		{uint32(negative), uint32(negative), ErrSize},
		{1, MaxSize + 1, ErrSize},
		{MaxSize, MaxSize, ErrNoSpace},
		{513, 513, ErrNoSpace},
	} {
		_, err := a.AllocAtLeast(0, c.low, c.want)
		wantErr(t, err, c.err)
	}
	for _, cluster := range []int{-1, 2, math.MaxInt, math.MinInt} {
		_, err := a.Alloc(cluster, 16)
		wantErr(t, err, ErrCluster)
		wantErr(t, a.Free(cluster, Block{0, 16}), ErrCluster)
	}
	checkSums(t, a, 0)
	if b := mustAlloc(t, a, 0, 1); b != (Block{0, 16}) {
		t.Errorf("one byte gave %+v", b)
	}
}

// Rungs 1 and 2: own arena, then the next ones round the end; spill counted
// with both sides.
func TestInvariant4LadderArenas(t *testing.T) {
	a := newTest(t, 3, 3*128)
	for i, want := range []Block{{128, 64}, {192, 64}, {256, 64}, {320, 64}, {0, 64}, {64, 64}} {
		if got := mustAlloc(t, a, 1, 64); got != want {
			t.Fatalf("block %d is %+v, want %+v", i, got, want)
		}
	}
	_, err := a.Alloc(1, 64)
	wantErr(t, err, ErrNoSpace)
	for i, want := range []uint64{128, 0, 128} {
		if got := a.Stats(i).Spill; got != want {
			t.Errorf("arena %d gave %d bytes away, want %d", i, got, want)
		}
	}
	for i, want := range []uint64{0, 256, 0} {
		if got := a.Stats(i).Taken; got != want {
			t.Errorf("cluster %d took %d bytes from other arenas, want %d", i, got, want)
		}
	}
	if s := a.Stats(1); s.Allocs != 6 || s.Refused != 1 {
		t.Errorf("allocs %d refused %d, want 6 and 1", s.Allocs, s.Refused)
	}
	checkSums(t, a, 3*128)
}

// Rungs 3 and 4: tails only when no arena can serve; own list first.
func TestInvariant4LadderFreelists(t *testing.T) {
	a := newTest(t, 2, 256)
	first, second := mustAlloc(t, a, 0, 64), mustAlloc(t, a, 0, 64)
	mustFree(t, a, 1, first)
	mustFree(t, a, 0, second)
	if got := mustAlloc(t, a, 0, 128); got.Off != 128 {
		t.Fatalf("a tail was used while arena 1 had space: %+v", got)
	}
	if got := mustAlloc(t, a, 0, 64); got != second {
		t.Fatalf("got %+v, want own cluster's tail %+v", got, second)
	}
	if got := mustAlloc(t, a, 0, 64); got != first {
		t.Fatalf("got %+v, want the other cluster's tail %+v", got, first)
	}
	if got := a.Stats(0).Foreign; got != 64 {
		t.Errorf("foreign reuse %d bytes, want 64", got)
	}
	checkSums(t, a, 256)
}

func TestAllocAtLeastTakesTheRest(t *testing.T) {
	a := newTest(t, 2, 256)
	mustAlloc(t, a, 0, 96)
	b, err := a.AllocAtLeast(0, 20, 128)
	if err != nil || b != (Block{96, 32}) {
		t.Fatalf("got %+v, %v; want the last 32 bytes of arena 0", b, err)
	}
	b, err = a.AllocAtLeast(0, 48, 112)
	if err != nil || b != (Block{128, 112}) {
		t.Fatalf("got %+v, %v; want 112 bytes of arena 1", b, err)
	}
	_, err = a.AllocAtLeast(0, 48, 64)
	wantErr(t, err, ErrNoSpace)
	checkSums(t, a, 96+32+112)
}

func TestInvariant9Reset(t *testing.T) {
	a := newTest(t, 2, 256)
	b := mustAlloc(t, a, 0, 128)
	tail := Block{b.Off + 64, 64}
	mustFree(t, a, 0, tail)
	a.arenas[1].lock.Store(2) // a worker died here
	a.Reset()
	if got := a.Total(); got != (Stats{Size: 256}) {
		t.Fatalf("after Reset %+v", got)
	}
	// The header of the earlier round is still in memory. Freeing the same tail
	// unwritten is right and must not look like a double free.
	if again := mustAlloc(t, a, 0, 128); again != b {
		t.Fatalf("got %+v, want %+v", again, b)
	}
	mustFree(t, a, 0, tail)
	mustFree(t, a, 1, Block{b.Off, 64})
}

func TestBytes(t *testing.T) {
	a := newTest(t, 1, 128)
	b := mustAlloc(t, a, 0, 64)
	if m := a.Bytes(b); len(m) != 64 || cap(m) != 64 {
		t.Errorf("len %d cap %d, want 64 and 64", len(m), cap(m))
	}
	for _, bad := range []Block{{128, 1}, {0, 129}, {math.MaxUint32, math.MaxUint32}} {
		if a.Bytes(bad) != nil {
			t.Errorf("%+v has bytes", bad)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	for r := sound; r < reasonCount; r++ {
		if r.String() == "" {
			t.Errorf("reason %d has no text", r)
		}
	}
	if s := reason(99).String(); !strings.Contains(s, "99") {
		t.Errorf("unknown reason prints %q", s)
	}
}

// Control words and data in one mapping, as in one map value.
func TestOneMapping(t *testing.T) {
	m := testheap.Mapped(t, 64<<10)
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
