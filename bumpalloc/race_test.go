package bumpalloc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"stackshot/internal/testheap"
)

const workers = 8

// together runs body once for each worker, all at once.
func together(body func(worker int)) {
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { body(w) })
	}
	wg.Wait()
}

// kinds of memory every concurrent test runs over.
func eachMemory(t *testing.T, size int, run func(t *testing.T, data []byte)) {
	t.Run("heap", func(t *testing.T) { run(t, make([]byte, size)) })
	t.Run("mmap", func(t *testing.T) { run(t, testheap.Mapped(t, size)) })
}

// Invariant 2: workers that only bump get every byte exactly once.
func TestInvariant2EveryByteOnce(t *testing.T) {
	const size = 3*(64<<10) + 48
	eachMemory(t, size, func(t *testing.T, data []byte) {
		a, own := newOver(t, data, 3), newOwners(size)
		var got atomic.Uint64
		together(func(w int) {
			r := rand.New(rand.NewPCG(uint64(w), 7))
			for {
				want := 1 + r.Uint32N(700)
				b, err := a.AllocAtLeast(w%3, 1, want)
				if errors.Is(err, ErrNoSpace) {
					return
				}
				if err != nil || !own.claim(b, int32(w+1)) {
					t.Errorf("worker %d: %+v, %v", w, b, err)
					return
				}
				got.Add(uint64(b.Len))
			}
		})
		if got.Load() != size || own.held() != size {
			t.Errorf("handed out %d bytes, %d held, of %d", got.Load(), own.held(), size)
		}
		checkSums(t, a, size)
	})
}

// Invariant 3: allocating, splitting and freeing at once, no two live blocks
// overlap, what a worker wrote stays, and the sums add up at the end.
func TestInvariant3NoOverlap(t *testing.T) {
	const size = 24 << 10
	for _, clusters := range []int{1, 3, workers} {
		t.Run(fmt.Sprintf("clusters=%d", clusters), func(t *testing.T) {
			eachMemory(t, size, func(t *testing.T, data []byte) {
				a, own := newOver(t, data, clusters, WithSpin(2000)), newOwners(size)
				together(func(w int) { churn(t, a, own, w, 400) })
				if err := a.Err(); err != nil {
					t.Fatal(err)
				}
				s := a.Total()
				if own.held() != 0 || s.Used != s.Overhead || s.Overhead != s.Free+s.Lost() {
					t.Errorf("all was given back, but %d bytes are held: %+v, lost %d", own.held(), s, s.Lost())
				}
				checkSums(t, a, 0)
			})
		})
	}
}

// churn is one worker: it allocates, paints, checks the paint, gives the tail
// back first and the rest later. A lock holder that the operating system takes
// off its CPU makes ErrBusy legal here: the world does not stand still.
func churn(t *testing.T, a *Allocator, own owners, w, rounds int) {
	r := rand.New(rand.NewPCG(uint64(w), 11))
	cluster, me := w%a.Clusters(), int32(w+1)
	var live []Block
	for range rounds {
		low := 1 + r.Uint32N(300)
		b, err := a.AllocAtLeast(cluster, low, low+r.Uint32N(300))
		if err == nil {
			if b.Len < low || b.Off%Align != 0 || b.Len%Align != 0 || !own.claim(b, me) {
				t.Errorf("worker %d: bad or overlapping block %+v for %d", w, b, low)
				return
			}
			b = giveTail(t, a, own, b, cluster, me, r)
			paint(a.Bytes(b), byte(me))
			live = append(live, b)
		} else if !errors.Is(err, ErrNoSpace) && !errors.Is(err, ErrBusy) {
			t.Error(err)
			return
		}
		if errors.Is(err, ErrBusy) {
			runtime.Gosched()
		}
		for len(live) > 8 || err != nil && len(live) > 0 {
			err = nil
			giveBack(t, a, own, live[0], cluster, me)
			live = live[1:]
		}
	}
	for _, b := range live {
		giveBack(t, a, own, b, cluster, me)
	}
}

// giveTail frees a random aligned end of b and returns what is kept.
func giveTail(t *testing.T, a *Allocator, own owners, b Block, cluster int, me int32, r *rand.Rand) Block {
	keep := Align * (1 + r.Uint32N(b.Len/Align))
	if tail := (Block{b.Off + keep, b.Len - keep}); tail.Len > 0 {
		paint(a.Bytes(tail), byte(me))
		giveBack(t, a, own, tail, cluster, me)
	}
	return Block{b.Off, keep}
}

func giveBack(t *testing.T, a *Allocator, own owners, b Block, cluster int, me int32) {
	for i, c := range a.Bytes(b) {
		if c != byte(me) {
			t.Errorf("byte %d of %+v is %d, worker %d wrote it", i, b, c, me)
			return
		}
	}
	if !own.drop(b, me) {
		t.Errorf("worker %d lost %+v", me, b)
	}
	if err := a.Free(cluster, b); err != nil && !errors.Is(err, ErrBusy) {
		t.Errorf("Free(%+v): %v", b, err)
	}
}

func paint(b []byte, c byte) {
	for i := range b {
		b[i] = c
	}
}

// Stats may be read at any time: no counter pair is ever the wrong way round.
func TestStatsWhileWorking(t *testing.T) {
	a, own := newTest(t, 2, 16<<10, WithSpin(2000)), newOwners(16<<10)
	var done atomic.Bool
	var reader sync.WaitGroup
	reader.Go(func() {
		for !done.Load() {
			for i := range 2 {
				if s := a.Stats(i); s.Overhead > 1<<40 || s.Used > s.Size {
					t.Errorf("cluster %d: %+v", i, s)
					return
				}
			}
		}
	})
	together(func(w int) { churn(t, a, own, w, 300) })
	done.Store(true)
	reader.Wait()
}

// The same with nothing between two requests, so that swaps do collide.
func TestInvariant2Contended(t *testing.T) {
	const size = 4 << 20
	a, own := newTest(t, 1, size), newOwners(size)
	taken := make([][]Block, workers)
	for w := range taken {
		taken[w] = make([]Block, 0, size/Align)
	}
	together(func(w int) {
		for {
			b, err := a.Alloc(0, Align)
			if errors.Is(err, ErrNoSpace) {
				return
			}
			if err == nil {
				taken[w] = append(taken[w], b)
			}
			if len(taken[w]) == cap(taken[w]) {
				return // more than there is: found below
			}
		}
	})
	n := 0
	for w, blocks := range taken {
		n += len(blocks)
		for _, b := range blocks {
			if !own.claim(b, int32(w+1)) {
				t.Fatalf("%+v was handed out twice", b)
			}
		}
	}
	if n != size/Align {
		t.Errorf("%d blocks, want %d", n, size/Align)
	}
	checkSums(t, a, size)
}
