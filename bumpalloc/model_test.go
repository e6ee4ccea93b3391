package bumpalloc

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is the allocator said plainly: slices of Go blocks instead of links in
// memory, no concurrency. It predicts every block and every counter exactly.
type model struct {
	base, size, used      []uint32
	lists                 [][]Block // first entry first
	spilled, spill, freed []uint64
	reused                []uint64
}

func newModel(a *Allocator) *model {
	n := a.Clusters()
	return &model{
		base: a.base, size: a.size, used: make([]uint32, n), lists: make([][]Block, n),
		spilled: make([]uint64, n), spill: make([]uint64, n), freed: make([]uint64, n), reused: make([]uint64, n),
	}
}

func (m *model) alloc(cluster int, low, want uint32) (Block, bool) {
	low, want = (low+15)/16*16, (want+15)/16*16
	for i := range m.used {
		k := (cluster + i) % len(m.used)
		if n := min(m.size[k]-m.used[k], want); n >= low {
			b := Block{m.base[k] + m.used[k], n}
			m.used[k] += n
			if i > 0 {
				m.spill[cluster] += uint64(n)
				m.spilled[k] += uint64(n)
			}
			return b, true
		}
	}
	for i := range m.lists {
		if b, ok := m.reuse((cluster+i)%len(m.lists), low, want); ok {
			return b, true
		}
	}
	return Block{}, false
}

// reuse ranks the whole list: serves in full before serves in part, then by
// closeness to want, then by place.
func (m *model) reuse(k int, low, want uint32) (Block, bool) {
	rank := func(b Block) uint64 {
		switch {
		case b.Len < low:
			return 1 << 60
		case b.Len >= want:
			return uint64(b.Len - want)
		}
		return 1<<40 + uint64(want-b.Len)
	}
	l := m.lists[k]
	at := -1
	for i, b := range l {
		if b.Len >= low && (at < 0 || rank(b) < rank(l[at])) {
			at = i
		}
	}
	if at < 0 {
		return Block{}, false
	}
	n := min(l[at].Len, want)
	l[at].Len -= n
	b := Block{l[at].Off + l[at].Len, n}
	if l[at].Len == 0 {
		m.lists[k] = slices.Delete(l, at, at+1)
	}
	m.reused[k] += uint64(n)
	return b, true
}

func (m *model) free(cluster int, b Block) {
	m.freed[cluster] += uint64(b.Len)
	off := (b.Off + 15) / 16 * 16
	if end := (b.Off + b.Len) / 16 * 16; end > off {
		m.lists[cluster] = slices.Insert(m.lists[cluster], 0, Block{off, end - off})
	}
}

// compare holds every counter and every list entry against the allocator.
func (m *model) compare(t *testing.T, a *Allocator) {
	t.Helper()
	for i := range m.used {
		s, bytes := a.Stats(i), uint64(0)
		for _, b := range m.lists[i] {
			bytes += uint64(b.Len)
		}
		if s.Used != uint64(m.used[i]) || s.Spill != m.spilled[i] || s.Taken != m.spill[i] || s.Reused != m.reused[i] ||
			s.Overhead != m.freed[i]-m.reused[i] || s.Free != bytes || s.Entries != uint64(len(m.lists[i])) {
			t.Fatalf("cluster %d: %+v, model used %d spilled %d spill %d reused %d freed %d list %v",
				i, s, m.used[i], m.spilled[i], m.spill[i], m.reused[i], m.freed[i], m.lists[i])
		}
		link := a.arenas[i].head.Load()
		for _, b := range m.lists[i] {
			e, why := a.read(link)
			if why != sound || (Block{e.off, e.length}) != b {
				t.Fatalf("cluster %d: list has %+v (%v), model %+v", i, e, why, b)
			}
			link = e.next
		}
	}
}

// replay runs operations, four bytes each, against allocator and model.
func replay(t *testing.T, clusters int, dataSize int, ops []byte) {
	a := newTest(t, clusters, dataSize, WithWindow(1<<30))
	m, own, live := newModel(a), newOwners(dataSize), []Block(nil)
	for ; len(ops) >= 4; ops = ops[4:] {
		cluster, x, y := int(ops[1])%clusters, uint32(ops[2]), uint32(ops[3])
		if ops[0]%3 < 2 || len(live) == 0 {
			low := x + 1
			want := low + y*uint32(ops[0]%2)
			b, err := a.AllocAtLeast(cluster, low, want)
			expect, ok := m.alloc(cluster, low, want)
			if ok != (err == nil) || b != expect || err != nil && !errors.Is(err, ErrNoSpace) {
				t.Fatalf("AllocAtLeast(%d, %d, %d) = %+v, %v; model %+v, %v", cluster, low, want, b, err, expect, ok)
			}
			if ok {
				if !own.claim(b, 1) {
					t.Fatalf("%+v overlaps a live block", b)
				}
				for i := range a.Bytes(b) {
					a.Bytes(b)[i] = 0xff // a caller's data never looks like an entry
				}
				live = append(live, b)
			}
			continue
		}
		i := int(x) % len(live)
		b := live[i]
		cut := min(y, b.Len) // keep this many bytes for good, give the tail back
		live = slices.Delete(live, i, i+1)
		own.drop(b, 1)
		own.claim(Block{b.Off, roundUp(cut)}, 2)
		tail := Block{b.Off + cut, b.Len - cut}
		mustFree(t, a, cluster, tail)
		if tail.Len > 0 {
			m.free(cluster, tail)
		}
	}
	m.compare(t, a)
	s := a.Total()
	if s.Overhead != s.Free+s.Lost() || s.Used-s.Free != own.held() {
		t.Fatalf("used %d, listed %d, held %d: a byte is missing", s.Used, s.Free, own.held())
	}
}

func TestInvariant5AgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		ops := make([]byte, 4*(1+r.IntN(400)))
		for i := range ops {
			ops[i] = byte(r.Uint32())
		}
		clusters := 1 + r.IntN(4)
		replay(t, clusters, clusters*minArena+r.IntN(16<<10), ops)
	}
}

func FuzzModel(f *testing.F) {
	f.Add(uint8(2), uint16(256), []byte{0, 0, 63, 0, 0, 1, 63, 0, 2, 1, 0, 16, 1, 0, 15, 200})
	f.Add(uint8(1), uint16(0), []byte{0, 0, 63, 0, 2, 0, 0, 5, 1, 0, 3, 9, 0, 0, 40, 0})
	f.Fuzz(func(t *testing.T, clusters uint8, extra uint16, ops []byte) {
		n := 1 + int(clusters)%8
		replay(t, n, n*minArena+int(extra), ops)
	})
}
