package bumpalloc

import (
	"math"
	"strings"
	"testing"
)

// Invariant 7: each way a freelist or bump word can be wrong is found, named,
// and not followed; other clusters go on serving.
func TestInvariant7CorruptIsReported(t *testing.T) {
	// Three 64-byte entries on list 0, first to last c, b, a; arena 1 is used up.
	const inA, inB, inC = 0, 96, 192
	setNext := func(al *Allocator, off, next uint32) { al.write(entry{off: off, length: 64, next: next}) }
	for _, c := range []struct {
		name   string
		damage func(*Allocator)
		want   reason
	}{
		{"head past the end", func(a *Allocator) { a.arenas[0].head.Store(toLink(uint32(len(a.data)))) }, badLink},
		{"head at the last byte", func(a *Allocator) { a.arenas[0].head.Store(math.MaxUint32) }, badLink},
		{"head off the grid", func(a *Allocator) { a.arenas[0].head.Store(toLink(inC) + 8) }, badLink},
		{"next past the end", func(a *Allocator) { setNext(a, inC, toLink(1<<31)) }, badLink},
		{"next without the link bit", func(a *Allocator) { setNext(a, inC, inB) }, badLink},
		{"next into a live block", func(a *Allocator) { setNext(a, inC, toLink(64)) }, badSeal},
		{"next into the middle of an entry", func(a *Allocator) { setNext(a, inC, toLink(inB+16)) }, badSeal},
		{"seal of another round", func(a *Allocator) { *a.word(inB + 8) -= 1 << 32 }, badSeal},
		{"cycle of one", func(a *Allocator) { setNext(a, inC, toLink(inC)) }, badCycle},
		{"cycle of two", func(a *Allocator) { setNext(a, inB, toLink(inC)) }, badCount},
		{"cycle of two, count forged", func(a *Allocator) {
			setNext(a, inB, toLink(inC))
			a.arenas[0].entries.Store(24)
		}, badCycle},
		{"cycle of three, count forged", func(a *Allocator) {
			setNext(a, inA, toLink(inC))
			a.arenas[0].entries.Store(24)
		}, badCycle},
		{"count beyond memory", func(a *Allocator) { a.arenas[0].entries.Store(math.MaxUint32) }, badCount},
		{"count too high", func(a *Allocator) { a.arenas[0].entries.Store(4) }, badCount},
		{"count too low", func(a *Allocator) { a.arenas[0].entries.Store(2) }, badCount},
		{"list cut short", func(a *Allocator) { setNext(a, inC, 0) }, badCount},
		{"length zero", func(a *Allocator) { a.write(entry{off: inC, next: toLink(inB)}) }, badLength},
		{"length off the grid", func(a *Allocator) { a.write(entry{off: inC, length: 65, next: toLink(inB)}) }, badLength},
		{"length into the next arena", func(a *Allocator) { a.write(entry{off: inC, length: 144, next: toLink(inB)}) }, badLength},
		{"length beyond all", func(a *Allocator) { a.write(entry{off: inC, length: math.MaxUint32 - 15, next: toLink(inB)}) }, badLength},
		{"bump word past the end", func(a *Allocator) { a.arenas[0].used.Store(512) }, badUsed},
		{"bump word off the grid", func(a *Allocator) { a.arenas[0].used.Store(8) }, badUsed},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newTest(t, 2, 640)
			for range 3 {
				mustAlloc(t, a, 0, 64)
				mustAlloc(t, a, 0, 32)
			}
			if n := a.size[0] - a.arenas[0].used.Load(); n > 0 {
				mustAlloc(t, a, 0, n)
			}
			b, rest := mustAlloc(t, a, 1, 128), a.size[1]-128
			mustAlloc(t, a, 1, rest)
			for _, off := range []uint32{inA, inB, inC} {
				mustFree(t, a, 0, Block{off, 64})
			}
			c.damage(a)
			_, err := a.Alloc(0, 80) // no entry fits: the walk goes all the way
			checkFault(t, err, c.want, a)
			if c.want != badUsed {
				wantErr(t, a.Free(0, Block{64, 32}), ErrCorrupt)
			}
			mustFree(t, a, 1, b)
			if got := mustAlloc(t, a, 0, 128); got != b {
				t.Errorf("got %+v, want %+v from the sound cluster", got, b)
			}
			a.Reset()
			if err := a.Err(); err != nil {
				t.Errorf("after Reset: %v", err)
			}
		})
	}
}

func checkFault(t *testing.T, err error, want reason, a *Allocator) {
	t.Helper()
	wantErr(t, err, ErrCorrupt)
	if got := reason(a.arenas[0].fault.Load() >> 32); got != want {
		t.Fatalf("reason %q, want %q (%v)", got, want, err)
	}
	err = a.Err()
	wantErr(t, err, ErrCorrupt)
	if text := "bumpalloc: cluster 0: control words or freelist are corrupt: " + want.String() + " 0x"; !strings.HasPrefix(err.Error(), text) {
		t.Errorf("error %q, want %q", err, text)
	}
}

// The listed total smaller than an entry: found when the entry is cut.
func TestInvariant7ListedBytes(t *testing.T) {
	a, blocks := exhausted(t, nil, 64)
	freeAll(t, a, blocks)
	a.arenas[0].listed.Store(32)
	_, err := a.Alloc(0, 64)
	checkFault(t, err, badListed, a)
}

// FuzzHostileWords overwrites any word of control or freelist memory: nothing
// may panic, hang, or hand out memory that is not inside data.
func FuzzHostileWords(f *testing.F) {
	f.Add(uint16(256/8), uint64(1), uint16(0), uint64(1<<32|1), uint32(64))
	f.Add(uint16(264/8), uint64(math.MaxUint64), uint16(2), uint64(0), uint32(16))
	f.Fuzz(func(t *testing.T, ctlAt uint16, ctlWord uint64, dataAt uint16, dataWord uint64, size uint32) {
		ctl := make([]byte, ControlSize(2))
		a, err := New(ctl, make([]byte, 1024), 2)
		if err != nil {
			t.Fatal(err)
		}
		a.spin = 50
		for i := range 16 {
			b := mustAlloc(t, a, i%2, 64)
			if i%3 == 0 {
				mustFree(t, a, i%2, Block{b.Off, 48})
			}
		}
		c := Allocator{data: ctl}
		*c.word(uint32(ctlAt) * 8 % uint32(len(ctl))) = ctlWord
		*a.word(uint32(dataAt) * 8 % 1024) = dataWord
		for i := range 24 {
			b, err := a.AllocAtLeast(i%2, min(size, 16), size)
			if err == nil && a.Bytes(b) == nil {
				t.Fatalf("block %+v is outside", b)
			}
			a.Free(1-i%2, b) // any error is fine, a panic is not
			_, _, _ = a.Total(), a.Err(), a.Stats(0)
		}
	})
}
