package bpf

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

// Bits of an entry that leads to a table, and of one that maps a page for the user
// (usermem.h).
var entryBits = map[string]struct{ table, page uint64 }{"amd64": {7, 7}, "arm64": {3, 0x43}}

// tables are page tables in pages of ours, the first first, and behind them a page
// with value in its first word, which they map at va.
type tables struct {
	pages   [][]byte
	at      []uint64 // physical addresses
	indexes []uint64 // of the entry in each
	va      uint64
}

const forgedValue = 0x600df00d

func newTables(t *testing.T, m *DirectMap) *tables {
	t.Helper()
	size, bits := os.Getpagesize(), pageShift()-3
	levels := int((m.TopShift-pageShift())/bits) + 1
	mem := mapped(t, (levels+1)*size, unix.PROT_READ|unix.PROT_WRITE)
	unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
	if err := unix.Mlock(mem); err != nil {
		t.Fatal(err)
	}
	x := &tables{}
	for i := range levels + 1 {
		page := mem[i*size:][:size]
		page[0] = 1
		frame, err := pagemap("/proc/self/pagemap")(addrOf(page))
		if err != nil {
			t.Fatal(err)
		}
		x.pages, x.at = append(x.pages, page), append(x.at, frame<<pageShift())
		if i < levels {
			index := uint64(1)
			x.indexes = append(x.indexes, index)
			x.va |= index << (m.TopShift - uint32(i)*bits)
		}
	}
	binary.NativeEndian.PutUint64(x.pages[levels], forgedValue)
	return x
}

// build makes every entry anew.
func (x *tables) build(m *DirectMap) {
	for i := range x.indexes {
		x.lead(m, i, x.at[i+1])
	}
}

// lead has table i lead to a physical address.
func (x *tables) lead(m *DirectMap, i int, pa uint64) {
	bits := entryBits[runtime.GOARCH].table
	if i == len(x.indexes)-1 {
		bits = entryBits[runtime.GOARCH].page
	}
	binary.NativeEndian.PutUint64(x.pages[i][8*x.indexes[i]:], pa|bits|m.Encryption)
}

// Page tables are walked only through ordinary memory, the first one too: an mm that
// was freed has another's bytes where its first table was named.
func TestNoTableButInOrdinaryMemory(t *testing.T) {
	testneed.Live(t)
	w := newForgedWorld(t)
	x := newTables(t, &w.ram)
	x.build(&w.ram)
	w.find(t, 2) // tells where the copy in vmalloc memory is
	first := w.ram.Base + x.at[0]
	want := func(what string, begin uint64, want word) {
		t.Helper()
		if got := w.walk(t, begin, x.va); got != want {
			t.Errorf("%s: %#x, reason %d; want %#x, reason %d", what, got.value, got.why, want.value, want.why)
		}
	}
	want("whole tables", first, word{value: forgedValue})
	copy(w.twin, x.pages[0])
	copy(w.copies, x.pages[0])
	copy(w.page, x.pages[0])
	for why, addr := range w.hostile(0) {
		want("first table "+why, addr, word{why: pageRefused})
	}
	copy(x.pages[0][16:], x.pages[0][8:16])
	want("first table at an odd address", first+8, word{why: pageRefused})
	want("first table at an odd address", first+4, word{why: pageRefused})
	last := w.ram.RAM[len(w.ram.RAM)-1].End
	for i := range x.indexes {
		for why, pa := range map[string]uint64{"not in System RAM": w.twinAt - w.ram.Base, "behind the last of RAM": last} {
			x.build(&w.ram)
			copy(w.twin, x.pages[i+1])
			x.lead(&w.ram, i, pa)
			want(fmt.Sprintf("table %d leads %s", i, why), first, word{why: pageRefused})
		}
	}
}
