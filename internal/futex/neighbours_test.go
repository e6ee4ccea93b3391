package futex

import (
	"math/rand/v2"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// Words that a program of its own making waits for, whatever it keeps around them: a mutex
// of Rust, by its call, never names anybody; one by glibc's call seldom does, though all
// that lies around it is small or the number of a thread.
func TestNeighboursNameNobody(t *testing.T) {
	testneed.Live(t)
	rng := rand.New(rand.NewPCG(14, 1))
	table := new(Table)
	for i := range uint32(16) {
		table.Add(Thread{Tid: 700 + i, Tgid: 700, Start: uint64(i)}, nil)
	}
	const tries = 200_000
	named := map[uint32]int{}
	for range tries {
		around := make([]uint32, 10)
		for i := range around {
			around[i] = []uint32{0, 0, 1, 2, rng.Uint32N(64), 700 + rng.Uint32N(16), rng.Uint32()}[rng.IntN(7)]
		}
		around[4] = 2
		for _, op := range []uint32{opWait, opWaitBitset} {
			f := lay(private, op, 2, -before, around...)
			if got := resolve(table, f, rng.IntN(16), noMemory{}); got.Object == kcdata.FutexGlibcMutex && got.OwnerTid != 0 {
				named[op]++
			}
		}
	}
	if named[opWaitBitset] != 0 {
		t.Errorf("%d of %d words of Rust name an owner", named[opWaitBitset], tries)
	}
	if n := named[opWait]; n == 0 || n > tries/200 {
		t.Errorf("%d of %d words by FUTEX_WAIT name an owner: this proves nothing, or they are too many", n, tries)
	}
	t.Logf("of %d words by FUTEX_WAIT %d name an owner", tries, named[opWait])
}
