package snapshot

import (
	"errors"
	"testing"

	"stackshot/bumpalloc"
	"stackshot/internal/bpf"
	"stackshot/internal/engine"
	"stackshot/internal/engine/trap"
	"stackshot/internal/testneed"
)

// Two clusters, and one CPU at work whose own arena is too small: it goes on in
// the other's, then in the tails, and counts what it took. Go's allocator takes
// over the lists that BPF made, to the last byte.
func TestTrapSpillsAndTakesTails(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	_, pids := stillWorld(t, crowd()...)
	_, _, want := sectionOf(t, Options{}, pids)
	s, e := trapSession(t, Options{CPUs: "0", Buffer: int64(engine.RoundUp(len(want)*3/2, 4096))})
	s.plan.Topology.Clusters = append(s.plan.Topology.Clusters, s.plan.Topology.Clusters...)
	_, _, got := sectionFrom(t, s, pids)
	wantSameSection(t, "pull, and trap spilling", want, got)

	a := e.Mem.Alloc
	one, two := a.Stats(0), a.Stats(1)
	if by := one.Taken + two.Taken; by == 0 || one.Spill+two.Spill != by {
		t.Errorf("spilled: givers count %d bytes, takers %d, want the same, not 0", one.Spill+two.Spill, by)
	}
	if err := a.Err(); err != nil {
		t.Error(err)
	}
	free, overhead := one.Free+two.Free, one.Overhead+two.Overhead
	if free == 0 || free != overhead {
		t.Errorf("free %d of overhead %d", free, overhead)
	}
	rest := uint64(len(e.Mem.Data)) - one.Used - two.Used + free
	for {
		b, err := a.AllocAtLeast(0, bumpalloc.Align, 4096)
		if errors.Is(err, bumpalloc.ErrNoSpace) {
			break
		}
		if err != nil || uint64(b.Len) > rest {
			t.Fatalf("%d bytes of %d left: %v", b.Len, rest, err)
		}
		rest -= uint64(b.Len)
	}
	if rest != 0 {
		t.Errorf("%d bytes of the lists that BPF made are out of reach", rest)
	}
}

// With every arena used up, BPF records in what Go has put on the freelists of
// both clusters, its own first, and Go finds them sound afterwards.
func TestTrapRecordsInFreelists(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	_, pids := stillWorld(t, crowd()...)
	_, _, want := sectionOf(t, Options{}, pids)
	var e *trap.Engine
	blocks := make([]bumpalloc.Block, 0, 1024)
	s := openTest(t, Options{Engine: EngineTrap, CPUs: "0", Buffer: 2 << 20, MaxBuffer: 2 << 20, Latency: LatencyOff}, engine.Hooks{BeforeArrival: func(cpu int) {
		if cpu != e.Team.Workers[0].CPU {
			return
		}
		blocks = blocks[:0]
		for len(blocks) < cap(blocks) {
			b, err := e.Mem.Alloc.AllocAtLeast(0, 16<<10, 16<<10)
			if err != nil {
				break
			}
			blocks = append(blocks, b)
		}
		for i, b := range blocks {
			e.Mem.Alloc.Free(flagInt(i%16 != 0), b)
		}
	}})
	e = s.engine.(*trap.Engine)
	s.plan.Topology.Clusters = append(s.plan.Topology.Clusters, s.plan.Topology.Clusters...)
	_, _, got := sectionFrom(t, s, pids)
	wantSameSection(t, "pull, and trap in freelists", want, got)
	one, two := e.Mem.Alloc.Stats(0), e.Mem.Alloc.Stats(1)
	reused, foreign := one.Reused+two.Reused, one.Foreign+two.Foreign
	if err := e.Mem.Alloc.Err(); err != nil || reused < uint64(len(got))/2 || foreign == 0 || foreign == reused {
		t.Errorf("%d bytes of records: %v, %+v, %+v", len(got), err, one, two)
	}
}

func flagInt(b bool) int { return int(bpf.Flag(b)) }
