package vmcore

import (
	"bytes"
	"debug/elf"
	"errors"
	"slices"
	"testing"
)

// Memory that begins or ends within a page: a page is handed out if all of it is there, in whatever pieces.
func TestPartsOfPages(t *testing.T) {
	r := rng(t, 1)
	b := make([]byte, 3*4096)
	noise(r, b)
	f := &elfFile{machine: elf.EM_X86_64}
	f.add(0x100, 0x1000, b[0x100:0x1100])  // page 0 without its beginning, and a piece of page 1
	f.add(0x1100, 0xe00, b[0x1100:0x1f00]) // more of page 1
	f.add(0x1f00, 0x180, b[0x1f00:0x2080]) // the rest, and a piece of page 2
	f.add(0x2100, 0x80, b[0x2100:0x2180])  // a piece of page 2 behind a hole
	f.add(0x2200, 0x80, nil)               // a piece that is left out
	f.add(0x3f00, 0x100, b[0x2f00:0x3000]) // the end of page 3
	f.add(0x4000, 0x2010, b[:0x2000])      // pages 4 and 5, and a piece of page 6 that is left out
	c := openBytes(t, f.bytes())
	var got []uint64
	n, err := c.Pages(func(pa uint64, run []byte) error {
		got = append(got, pa, uint64(len(run)))
		want := b[:0x2000]
		if pa == 0x1000 {
			want = b[0x1000:0x2000]
		}
		if !bytes.Equal(run, want) {
			t.Errorf("%d bytes at %#x differ", len(run), pa)
		}
		return nil
	})
	if want := []uint64{0x1000, 0x1000, 0x4000, 0x2000}; err != nil || !slices.Equal(got, want) || n != (Tally{Pages: 3, Absent: 4}) {
		t.Errorf("%#x, %+v, %v; want %#x", got, n, err, want)
	}
	p := make([]byte, 0x1f80)
	if err := c.ReadPhys(p, 0x100); err != nil || !bytes.Equal(p, b[0x100:0x2080]) {
		t.Errorf("across pieces: %v", err)
	}
	for pa, want := range map[uint64]error{0: ErrOutside, 0x2080: ErrOutside, 0x2200: ErrAbsent, 0x3000: ErrOutside, 0x600f: ErrAbsent, 0x6010: ErrOutside} {
		if err := c.ReadPhys(p[:1], pa); !errors.Is(err, want) {
			t.Errorf("%#x: %v, want %v", pa, err, want)
		}
	}
}
