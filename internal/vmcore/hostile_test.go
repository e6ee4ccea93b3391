package vmcore

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
)

// memoryLimit is what no file may make a reader hold, in bytes.
const memoryLimit = 64 << 20

// use does with a dump all that can be done. Whatever it holds, no run and no error breaks a promise.
func use(t testing.TB, r io.ReaderAt, size uint64) {
	c, err := open(r, size, "core")
	if err != nil {
		named(t, err)
		return
	}
	for _, err := range c.Flaws() {
		named(t, err)
	}
	var next, n uint64
	page := uint64(c.PageSize())
	b := make([]byte, page)
	stop := errors.New("stop")
	tally, err := c.Pages(func(pa uint64, run []byte) error {
		if pa < next || pa%page != 0 || len(run) == 0 || len(run) > RunSize || uint64(len(run))%page != 0 {
			t.Fatalf("run of %d bytes at %#x, after %#x", len(run), pa, next)
		}
		next = pa + uint64(len(run))
		if err := c.ReadPhys(b, pa); err != nil || !bytes.Equal(b, run[:page]) {
			t.Fatalf("page %#x is another when read alone: %v", pa, err)
		}
		if n += uint64(len(run)) / page; n > 1<<14 {
			return stop
		}
		return nil
	})
	if tally.Pages != n || (tally.Damaged > 0) != (tally.First != nil) {
		t.Fatalf("%+v, handed out %d pages", tally, n)
	}
	if tally.First != nil {
		named(t, tally.First)
	}
	if err != nil && err != stop {
		named(t, err)
	}
	for _, pa := range []uint64{0, 1, next - 1, next, 1 << 40, maxPhys - 1, math.MaxUint64 - 5, math.MaxUint64} {
		if err := c.ReadPhys(b, pa); err != nil {
			named(t, err)
		}
	}
}

// named wants an error to name the file, and damage its offset or address too.
func named(t testing.TB, err error) {
	t.Helper()
	text := err.Error()
	if !strings.Contains(text, "core") || errors.Is(err, ErrDamaged) && !strings.Contains(text, "offset 0x") {
		t.Fatalf("an error without its place: %v", err)
	}
}

func samples(t testing.TB) map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	m := randomImage(r, 60, 4096)
	f := segmentsOf(r, m)
	f.notes = notesOf(2, prstatusAMD64, vmcoreinfo)
	many := segmentsOf(r, m)
	many.xnum = true
	s := map[string][]byte{"elf": f.bytes(), "xnum": many.bytes()}
	for name, how := range map[string]uint32{"raw": 0, "zlib": byZlib, "snappy": bySnappy, "zstd": byZstd} {
		s[name] = kdumpOf(m, how).bytes(t)
	}
	return s
}

// A file that was cut anywhere is read as far as it goes.
func TestCutAnywhere(t *testing.T) {
	testneed.Slow(t)
	for name, file := range samples(t) {
		headers := 4096 // of ELF cores; kdump's lie in whole blocks
		if file[0] == 'K' {
			headers = 5 * 4096
		}
		step := testneed.Length(97, 1)
		for n := 0; n < len(file); n++ {
			if n > headers {
				n += 1000
			} else if n > 600 {
				n += step - 1
			}
			use(t, bytes.NewReader(file[:min(n, len(file))]), uint64(min(n, len(file))))
		}
		t.Logf("%s: %d bytes", name, len(file))
	}
}

// A file that was cut loses what lay behind the cut, counted, and nothing else.
func TestCutIsCounted(t *testing.T) {
	r := rng(t, 1)
	m := randomImage(r, 600, 4096)
	for _, file := range [][]byte{segmentsOf(r, m).bytes(), kdumpOf(m, byZlib).bytes(t)} {
		file = file[:len(file)*2/3]
		got := uint64(0)
		tally, err := openBytes(t, file).Pages(func(pa uint64, run []byte) error {
			for i := 0; i < len(run); i, got = i+4096, got+1 {
				if !bytes.Equal(run[i:i+4096], m.data[int(pa)/4096+i/4096]) {
					t.Fatalf("page %#x differs", pa)
				}
			}
			return nil
		})
		if err != nil || tally.Pages != got || tally.Damaged == 0 || got == 0 || tally.Absent != m.count(left) ||
			tally.Pages+tally.Damaged != m.count(held) || !errors.Is(tally.First, ErrDamaged) {
			t.Errorf("%+v, %v; %d pages of %d", tally, err, got, m.count(held))
		}
		if !strings.Contains(tally.First.Error(), "the file ends at") {
			t.Error(tally.First)
		}
	}
}

// Every word of the headers with the values that break sums.
func TestHostileWords(t *testing.T) {
	testneed.Slow(t)
	values := testneed.Length([]uint64{0, 1 << 31, 1 << 52, math.MaxUint64 - 4095},
		[]uint64{0, 1, 4095, 1 << 16, 1 << 31, 1<<32 - 1, 1 << 40, 1 << 51, 1 << 52, 1 << 63, 1<<63 - 1, math.MaxUint64 - 4095, math.MaxUint64})
	for name, file := range samples(t) {
		places := []int{}
		for i := 8; i < 64; i += 2 {
			places = append(places, i)
		}
		for i := range 60 {
			if name == "elf" || name == "xnum" {
				places = append(places, 64+i*8)
			} else {
				places = append(places, 424+4*(i%10), 4096+8*(i%13), 4*4096+8*i)
			}
		}
		for i, at := range places {
			for j, v := range values {
				if (i+j)%testneed.Length(3, 1) != 0 {
					continue
				}
				bad := bytes.Clone(file)
				binary.LittleEndian.PutUint64(bad[at:], v)
				testheap.Bound(t, memoryLimit, name, func() { use(t, bytes.NewReader(bad), uint64(len(bad))) })
			}
		}
	}
}

// sparse is a file of any size: a head, then bytes of one value.
type sparse struct {
	head []byte
	fill byte
}

func (s sparse) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		p[i] = s.fill
	}
	if off < int64(len(s.head)) {
		copy(p, s.head[off:])
	}
	return len(p), nil
}

// Files that are as big as they claim, and cost little: memory stays small.
func TestHugeClaims(t *testing.T) {
	testneed.Slow(t)
	m := randomImage(rng(t, 1), 60, 4096)
	f := segmentsOf(rng(t, 1), m)
	f.xnum = true
	elfHead := f.bytes()[:elfHeader]
	le := binary.LittleEndian
	for _, n := range []uint32{maxSegments, maxSegments + 1, math.MaxUint32} {
		section := make([]byte, sectionHeader)
		le.PutUint32(section[44:], n)
		h := bytes.Clone(elfHead)
		le.PutUint64(h[32:], 128)
		le.PutUint64(h[40:], 64)
		h = append(h, section...)
		for i := range uint64(min(n, maxSegments)) {
			h = appendPhdr(h, elf.PT_LOAD, segment{pa: i * 3 << 12, memory: 8192, inFile: 4096, off: i * 4096})
		}
		testheap.Bound(t, memoryLimit, "many segments", func() { use(t, sparse{head: h}, 1<<62) })
	}
	k := kdumpOf(m, byZlib).bytes(t)
	// 4 TiB of which nothing is in the file; 4 GiB of which everything is, and damaged.
	for fill, frames := range map[byte]uint64{0: 1 << 30, 0xff: 1 << 20} {
		le.PutUint32(k[436:], uint32(2*frames/8/4096))
		le.PutUint64(k[4096+96:], frames)
		testheap.Bound(t, memoryLimit, "many frames", func() { use(t, sparse{head: k, fill: fill}, 1<<62) })
	}
}
