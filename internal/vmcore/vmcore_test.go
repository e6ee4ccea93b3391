package vmcore

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stackshot/internal/testneed"

	"golang.org/x/sys/unix"
)

// What an ELF core gives is the memory that it was made of, whatever its segments look like.
func TestELFIsItsImage(t *testing.T) {
	for seed := range uint64(testneed.Length(40, 1000)) {
		r := rng(t, seed)
		m := randomImage(r, 50+r.IntN(500), 4096)
		f := segmentsOf(r, m)
		if seed%2 == 1 {
			f.shuffle(r)
		}
		f.xnum = seed%3 == 1
		for i := range f.segments {
			if g := &f.segments[i]; g.memory == g.inFile && r.IntN(4) == 0 {
				g.memory = 0 // as some writers do
			}
		}
		f.notes = notesOf(r.IntN(4), prstatusAMD64, "")
		same(t, r, m, openBytes(t, f.bytes()))
	}
}

// What a kdump-compressed file gives is the memory that it was made of, in every version and way of packing.
func TestKdumpIsItsImage(t *testing.T) {
	for seed := range uint64(testneed.Length(20, 500)) {
		r := rng(t, seed)
		block, frames := 4096, 50+r.IntN(300)
		if seed%5 == 4 {
			block, frames = 65536, frames/8
		}
		m := randomImage(r, frames, block)
		f := kdumpOf(m, []uint32{0, byZlib, bySnappy, byZstd}[seed%4])
		f.version, f.share = uint32(seed/4)%7, seed%3 == 0
		same(t, r, m, openBytes(t, f.bytes(t)))
	}
}

// More frames than a sector of the bitmap, runs that cross its end, and runs that begin with a word of the bitmap.
func TestKdumpOfManySectors(t *testing.T) {
	r := rng(t, 1)
	m := &image{page: 4096}
	var some [61][]byte
	for i := range some {
		some[i] = randomPage(r, m.page)
	}
	for len(m.kinds) < 2*leastSector+77 {
		k, n := kind(r.IntN(3)), 1+r.IntN(2000)
		if r.IntN(2) == 0 {
			n = n&^63 + -len(m.kinds)&63
		}
		for range n {
			m.add(k, some[len(m.kinds)%len(some)])
		}
	}
	for i := range 40 {
		m.kinds[leastSector-20+i], m.data[leastSector-20+i] = held, some[i]
	}
	f := kdumpOf(m, byZlib)
	f.share = true
	same(t, r, m, openBytes(t, f.bytes(t)))
}

// A dump has as many segments as it wants, and more than e_phnum can say.
func TestManySegments(t *testing.T) {
	r := rng(t, 1)
	m := &image{page: 4096}
	f := &elfFile{machine: elf.EM_AARCH64}
	page := randomPage(r, m.page)
	for i := range 70000 {
		m.add(held, page[:4096])
		m.add(left, nil)
		b := page
		if i > 50 {
			b, m.kinds[2*i], m.data[2*i] = nil, left, nil
		}
		f.add(uint64(2*i*4096), 8192, b)
	}
	same(t, r, m, openBytes(t, f.bytes()))
}

func TestAbout(t *testing.T) {
	m := randomImage(rng(t, 1), 40, 65536)
	f := segmentsOf(rng(t, 1), m)
	f.machine = elf.EM_AARCH64
	f.notes = notesOf(3, prstatusARM64, strings.Replace(vmcoreinfo, "4096", "65536", 1))
	k := kdumpOf(m, byZlib)
	k.machine, k.notes = "Unknown", notesOf(3, prstatusARM64, strings.Replace(vmcoreinfo, "4096", "16384", 1))
	old := kdumpOf(m, byZlib)
	old.version, old.machine = 3, "aarch64" // no notes yet, but vmcoreinfo
	for _, v := range []struct {
		file         []byte
		format, text string
	}{
		{f.bytes(), "elf", "arm64 65536 3"},
		{k.bytes(t), "kdump", "arm64 16384 3"},
		{old.bytes(t), "kdump", "arm64 4096 0"},
	} {
		c := openBytes(t, v.file)
		if got := fmt.Sprintf("%s %d %d", c.Arch(), c.PageSize(), c.CPUs()); c.Format() != v.format || got != v.text {
			t.Errorf("%s: %s, want %s %s", c.Format(), got, v.format, v.text)
		}
		if i := c.Info(); len(i) != 6 || i["OSRELEASE"] != "6.12.1-test" || i["SYMBOL(_stext)"] != "ffffffff81000000" {
			t.Errorf("vmcoreinfo: %v", i)
		}
		if len(c.Flaws()) != 0 {
			t.Errorf("flaws: %v", c.Flaws())
		}
		same(t, rng(t, 2), m, c)
	}
}

// A pass ends with the error of the function that it is for.
func TestPagesEnds(t *testing.T) {
	m := randomImage(rng(t, 1), 900, 4096)
	stop := errors.New("stop")
	for _, file := range [][]byte{segmentsOf(rng(t, 1), m).bytes(), kdumpOf(m, byZlib).bytes(t)} {
		calls := 0
		tally, err := openBytes(t, file).Pages(func(uint64, []byte) error {
			if calls++; calls == 3 {
				return stop
			}
			return nil
		})
		if err != stop || calls != 3 || tally.Pages == 0 || tally.Absent != 0 {
			t.Errorf("%v after %d calls: %+v", err, calls, tally)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "core")
	m := randomImage(rng(t, 1), 100, 4096)
	if err := os.WriteFile(file, kdumpOf(m, byZstd).bytes(t), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	same(t, rng(t, 1), m, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, dir, "/dev/null", filepath.Join(dir, "none")} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
