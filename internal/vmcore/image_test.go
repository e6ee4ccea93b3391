package vmcore

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// kind is what a dump has of a page frame.
type kind byte

const (
	hole kind = iota // the machine has no memory there
	left             // the dump leaves it out
	held
)

// image is the memory of a machine that tests dump: what each frame is, and the bytes of those that are held.
type image struct {
	page  int
	kinds []kind
	data  [][]byte
}

// randomImage makes one of n frames: runs of each kind, and pages of zeros, of text, of noise and of both.
func randomImage(r *rand.Rand, n, page int) *image {
	m := &image{page: page}
	for len(m.kinds) < n {
		k := kind(r.IntN(3))
		for range 1 + r.IntN(1+r.IntN(40)) {
			m.add(k, randomPage(r, page))
		}
	}
	m.kinds, m.data = m.kinds[:n], m.data[:n]
	// A dump without a page is refused.
	m.kinds[n/2], m.data[n/2] = held, randomPage(r, page)
	return m
}

func (m *image) add(k kind, b []byte) {
	if k != held {
		b = nil
	}
	m.kinds, m.data = append(m.kinds, k), append(m.data, b)
}

func randomPage(r *rand.Rand, page int) []byte {
	b := make([]byte, page)
	switch r.IntN(5) {
	case 0: // zeros
	case 4:
		copy(b, "a page that is there many times")
	case 1:
		copy(b, bytes.Repeat([]byte{byte(r.Uint32()), byte(r.Uint32()), 7}, page/3))
	case 2:
		noise(r, b)
	case 3:
		noise(r, b[:page/3])
	}
	return b
}

func noise(r *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

// count counts frames of a kind.
func (m *image) count(k kind) (n uint64) {
	for _, have := range m.kinds {
		if have == k {
			n++
		}
	}
	return n
}

// openBytes opens a dump that lies in memory.
func openBytes(t testing.TB, file []byte) *Core {
	t.Helper()
	c, err := open(bytes.NewReader(file), uint64(len(file)), "core")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// same holds all that a dump gives against the image that it is of.
func same(t testing.TB, r *rand.Rand, m *image, c *Core) {
	t.Helper()
	seen := make([][]byte, len(m.kinds))
	next := uint64(0)
	scale := uint64(m.page / c.PageSize())
	tally, err := c.Pages(func(pa uint64, run []byte) error {
		if pa < next || len(run) == 0 || len(run) > RunSize || pa%uint64(m.page) != 0 || len(run)%m.page != 0 {
			t.Fatalf("run of %d bytes at %#x, after %#x", len(run), pa, next)
		}
		next = pa + uint64(len(run))
		for b := range slices.Chunk(run, m.page) {
			seen[pa/uint64(m.page)] = bytes.Clone(b)
			pa += uint64(m.page)
		}
		return nil
	})
	want := Tally{Pages: m.count(held) * scale, Absent: m.count(left) * scale}
	if err != nil || tally != want {
		t.Fatalf("%+v, %v; want %+v", tally, err, want)
	}
	b := make([]byte, m.page)
	for i, k := range m.kinds {
		if !bytes.Equal(seen[i], m.data[i]) {
			t.Fatalf("frame %d of kind %d: %d bytes differ", i, k, len(seen[i]))
		}
		err := c.ReadPhys(b, uint64(i*m.page))
		switch {
		case k == held && (err != nil || !bytes.Equal(b, m.data[i])),
			k == left && !errors.Is(err, ErrAbsent),
			k == hole && !errors.Is(err, ErrOutside):
			t.Fatalf("frame %d of kind %d: %v", i, k, err)
		}
	}
	if err := c.ReadPhys(b[:1], uint64(len(m.kinds)*m.page)); !errors.Is(err, ErrOutside) {
		t.Fatalf("behind the end: %v", err)
	}
	for range 200 {
		pieces(t, r, m, c)
	}
}

// pieces reads a piece of any place and length.
func pieces(t testing.TB, r *rand.Rand, m *image, c *Core) {
	t.Helper()
	at := r.IntN(len(m.kinds) * m.page)
	b := make([]byte, min(1+r.IntN(3*m.page), len(m.kinds)*m.page-at))
	err := c.ReadPhys(b, uint64(at))
	for i := at; i < at+len(b); i = (i/m.page + 1) * m.page {
		switch m.kinds[i/m.page] {
		case left:
			if !errors.Is(err, ErrAbsent) {
				t.Fatalf("%d bytes at %#x: %v", len(b), at, err)
			}
			return
		case hole:
			if !errors.Is(err, ErrOutside) {
				t.Fatalf("%d bytes at %#x: %v", len(b), at, err)
			}
			return
		}
		if want := m.data[i/m.page][i%m.page:]; !bytes.HasPrefix(b[i-at:], want[:min(len(want), len(b)-(i-at))]) {
			t.Fatalf("%d bytes at %#x differ in the page of %#x", len(b), at, i)
		}
	}
	if err != nil {
		t.Fatalf("%d bytes at %#x: %v", len(b), at, err)
	}
}

func rng(t testing.TB, seed uint64) *rand.Rand {
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 16))
}
