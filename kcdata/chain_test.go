package kcdata

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// arena hands out chunks of random sizes from dirty memory and keeps account of
// what comes back.
type arena struct {
	rng      *rand.Rand
	given    int
	released int
}

var errArenaEmpty = errors.New("arena is empty")

func (a *arena) grow(min int) ([]byte, error) {
	n := min + a.rng.IntN(300)
	a.given += n
	return bytes.Repeat([]byte{0xA5}, n), nil
}

func (a *arena) release(tail []byte) { a.released += len(tail) }

func joined(c *Chain, from, to Mark) []byte {
	var out []byte
	for b := range c.Span(from, to) {
		out = append(out, b...)
	}
	return out
}

func TestK4ChainAndWriterGiveTheSameStream(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		a := &arena{rng: rng}
		c := NewChain(1000, a.grow, a.release)
		w := NewWriter(make([]byte, 1<<16))
		for _, call := range randomCalls(rng, 50) {
			ok(t, call.do(w))
			if rng.IntN(2) == 0 {
				ok(t, call.do(c))
				continue
			}
			// Raw bytes may be split over chunks.
			one := NewWriter(make([]byte, 4096))
			ok(t, call.do(one))
			for rest := one.Written(); len(rest) > 0; {
				n := copy(c.Room(), rest)
				c.Advance(n)
				rest = rest[n:]
			}
		}
		if got := joined(c, Mark{}, c.Mark()); !bytes.Equal(got, w.Written()) {
			t.Fatalf("seed %d: streams differ", seed)
		}
		if c.Len() != int64(w.Len()) {
			t.Errorf("seed %d: Len %d, want %d", seed, c.Len(), w.Len())
		}
		c.Close()
		if a.given-a.released != w.Len() {
			t.Errorf("seed %d: %d bytes given, %d released, %d used", seed, a.given, a.released, w.Len())
		}
	}
}

func TestK2ChainWithoutRoomKeepsItsTail(t *testing.T) {
	released, chunks := 0, 1
	c := NewChain(10, func(int) ([]byte, error) {
		if chunks == 0 {
			return nil, errArenaEmpty
		}
		chunks--
		return make([]byte, 64), nil
	}, func(tail []byte) { released += len(tail) })
	ok(t, c.Bytes(0x7777, make([]byte, 16)))
	before := c.Mark()
	err := c.Bytes(0x7777, make([]byte, 100))
	if !errors.Is(err, ErrNoSpace) || !errors.Is(err, errArenaEmpty) {
		t.Errorf("error %v, want ErrNoSpace because the arena is empty", err)
	}
	if c.Mark() != before || released != 0 {
		t.Errorf("a refused item moved the mark or lost the tail: %d released", released)
	}
	ok(t, c.EndContainer(1)) // 16 bytes still fit
	ok(t, c.EndContainer(1))
	if c.Room() != nil {
		t.Error("room in a full chain")
	}
}

func TestChainHasAtMostItsChunks(t *testing.T) {
	c := NewChain(2, func(n int) ([]byte, error) { return make([]byte, n), nil }, func([]byte) {})
	ok(t, c.EndContainer(1))
	ok(t, c.EndContainer(2))
	if err := c.EndContainer(3); !errors.Is(err, ErrNoSpace) {
		t.Errorf("third chunk of two: %v", err)
	}
	c.Reset()
	ok(t, c.EndContainer(3))
	if c.Len() != headerSize {
		t.Errorf("Len %d after Reset and one item", c.Len())
	}
}

func TestChainRefusesAChunkThatIsTooSmall(t *testing.T) {
	back := 0
	c := NewChain(4, func(n int) ([]byte, error) { return make([]byte, n-1), nil }, func(b []byte) { back += len(b) })
	if err := c.EndContainer(1); !errors.Is(err, ErrNoSpace) || back != headerSize-1 {
		t.Errorf("%v, %d bytes given back", err, back)
	}
}

func TestChainRewind(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 9))
		a := &arena{rng: rng}
		c := NewChain(1000, a.grow, a.release)
		for _, call := range randomCalls(rng, rng.IntN(20)) {
			ok(t, call.do(c))
		}
		mark := c.Mark()
		want := joined(c, Mark{}, mark)
		for _, call := range randomCalls(rng, rng.IntN(30)) {
			ok(t, call.do(c))
		}
		c.Rewind(mark)
		if got := joined(c, Mark{}, c.Mark()); !bytes.Equal(got, want) || c.Len() != int64(len(want)) {
			t.Fatalf("seed %d: %d bytes after Rewind, Len %d, want %d", seed, len(got), c.Len(), len(want))
		}
		ok(t, c.EndContainer(1))
		if got := joined(c, mark, c.Mark()); len(got) != headerSize {
			t.Errorf("seed %d: %d bytes since the mark", seed, len(got))
		}
	}
}

// K3: the calls made while the machine is stopped.
func TestK3ChainAllocatesNothing(t *testing.T) {
	memory := make([]byte, 1<<20)
	next := 0
	c := NewChain(64,
		func(n int) ([]byte, error) {
			n = max(n, 512)
			if next+n > len(memory) {
				return nil, ErrNoSpace
			}
			next += n
			return memory[next-n : next : next], nil
		},
		func([]byte) {})
	payload, words := make([]byte, 100), make([]uint64, 30)
	thread, ns := &LinuxThread{Tid: 1}, make([]LinuxThreadNS, 3)
	var nsAny any = ns
	all := func() {
		c.Reset()
		next = 0
		var bad error
		note := func(err error) {
			if err != nil {
				bad = err
			}
		}
		note(c.Begin(MagicStackshot))
		note(c.BeginContainer(TypeThread, 7))
		note(c.Bytes(TypeLinuxThread, payload))
		note(c.String(TypeThreadName, "name"))
		note(c.Array(TypeKernStackLR64, 10, 10, payload))
		note(c.Uint64s(TypeKernStackLR64, words))
		note(c.Uint64Desc("name", 1))
		note(c.Uint32Desc("name", 1))
		note(c.Struct(TypeLinuxThread, thread))
		note(c.StructArray(TypeLinuxThreadNS, nsAny))
		note(c.Define(TypeLinuxThread))
		note(c.String(TypeLinuxExePath, "/bin/a"))
		n := copy(c.Room(), payload)
		c.Advance(n)
		c.Rewind(c.Mark())
		note(c.EndContainer(7))
		note(c.End())
		if c.Bytes(0x7777, memory) == nil {
			note(errors.New("a chunk of 1 MiB fitted"))
		}
		c.Close()
		if bad != nil {
			t.Fatal(bad)
		}
	}
	all()
	if n := testing.AllocsPerRun(100, all); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}
