package bumpalloc

import (
	"errors"
	"reflect"
	"sync/atomic"
	"testing"
)

// newTest is an allocator over plain memory.
func newTest(t testing.TB, clusters, dataSize int, opts ...Option) *Allocator {
	t.Helper()
	return newOver(t, make([]byte, dataSize), clusters, opts...)
}

func newOver(t testing.TB, data []byte, clusters int, opts ...Option) *Allocator {
	t.Helper()
	a, err := New(make([]byte, ControlSize(clusters)), data, clusters)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range opts {
		o(a)
	}
	return a
}

// Option changes a bound of an allocator.
type Option func(*Allocator)

func WithSpin(turns int) Option     { return func(a *Allocator) { a.spin = turns } }
func WithWindow(entries int) Option { return func(a *Allocator) { a.window = entries } }

// Alloc asks for a block of one size.
func (a *Allocator) Alloc(cluster int, size uint32) (Block, error) {
	return a.AllocAtLeast(cluster, size, size)
}

// Lost is the part of the overhead that no later request can use.
func (s Stats) Lost() uint64 { return s.Overhead - min(s.Free, s.Overhead) }

// Total is the sum over all clusters.
func (a *Allocator) Total() (t Stats) {
	for i := range a.arenas {
		s := a.Stats(i)
		sum, add := reflect.ValueOf(&t).Elem(), reflect.ValueOf(s)
		for f := range sum.NumField() {
			sum.Field(f).SetUint(sum.Field(f).Uint() + add.Field(f).Uint())
		}
	}
	return t
}

func mustAlloc(t testing.TB, a *Allocator, cluster int, size uint32) Block {
	t.Helper()
	b, err := a.Alloc(cluster, size)
	if err != nil {
		t.Fatalf("Alloc(%d, %d): %v", cluster, size, err)
	}
	return b
}

func mustFree(t testing.TB, a *Allocator, cluster int, b Block) {
	t.Helper()
	if err := a.Free(cluster, b); err != nil {
		t.Fatalf("Free(%d, %+v): %v", cluster, b, err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// owners is a shadow of data memory: who holds each 16-byte granule. It finds
// two blocks that overlap, at the moment the second is handed out.
type owners []atomic.Int32

func newOwners(dataSize int) owners { return make(owners, dataSize/Align) }

// claim marks b as held by who (> 0), or reports that somebody holds it.
func (o owners) claim(b Block, who int32) bool {
	for g := b.Off / Align; g < (b.Off+b.Len)/Align; g++ {
		if !o[g].CompareAndSwap(0, who) {
			return false
		}
	}
	return true
}

// drop gives b back, or reports that who did not hold it.
func (o owners) drop(b Block, who int32) bool {
	for g := b.Off / Align; g < (b.Off+b.Len)/Align; g++ {
		if !o[g].CompareAndSwap(who, 0) {
			return false
		}
	}
	return true
}

// held is the number of bytes that anybody holds.
func (o owners) held() uint64 {
	n := uint64(0)
	for g := range o {
		if o[g].Load() != 0 {
			n += Align
		}
	}
	return n
}

// checkSums is invariant 5: with nobody inside, every byte is either never
// bumped, held, listed, or lost.
func checkSums(t testing.TB, a *Allocator, held uint64) {
	t.Helper()
	s := a.Total()
	if s.Used-s.Overhead != held {
		t.Fatalf("used %d - overhead %d = %d bytes held, want %d", s.Used, s.Overhead, s.Used-s.Overhead, held)
	}
	if s.Overhead != s.Free+s.Lost() || s.Used > s.Size {
		t.Fatalf("sums do not add up: %+v", s)
	}
	if s.Taken != s.Spill {
		t.Fatalf("takers count %d bytes of spill, givers %d", s.Taken, s.Spill)
	}
}
