package kcdata

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"stackshot/internal/testheap"
)

// A frame of ours unpacks to no more than its guess, and to little less. What other programs
// write, or nobody does, unpacks all the same.
func TestPlainGuess(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for _, body := range [][]byte{nil, noise[:9], noise, make([]byte, 1<<20), append(make([]byte, zstdBlock), noise...)} {
		plain := make([]byte, len(body)+4096)
		w := NewWriter(plain)
		ok(t, w.Begin(MagicStackshot))
		ok(t, w.Bytes(TypeLinuxStrings, body))
		ok(t, w.End())
		plain = w.Written()
		var packed bytes.Buffer
		ok(t, Compress(&packed, plain, EnvelopeZstd))
		n := int64(len(plain))
		if got := plainGuess(packed.Bytes()); got < n || got > n+2*zstdBlock {
			t.Errorf("%d bytes: guess %d", n, got)
		}
		for _, guess := range []int64{0, 1, n - 1, n, n + 1, 2 * n} {
			got, err := readLimited([]byte("before"), bytes.NewReader(plain), 0, n, guess)
			if ok(t, err); string(got) != "before"+string(plain) {
				t.Errorf("%d bytes, guess %d: %d other bytes", n, guess, len(got))
			}
		}
	}
}

// Blocks that a frame has not are given no memory.
func TestPlainGuessOfAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		b := append([]byte{0x28, 0xb5, 0x2f, 0xfd}, make([]byte, r.IntN(60))...)
		for i := 4; i < len(b); i++ {
			b[i] = byte(r.Uint32())
		}
		if n := plainGuess(b); n < 0 || n > int64(len(b))*zstdBlock {
			t.Fatalf("%x: %d", b, n)
		}
	}
	many := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0x58}, bytes.Repeat([]byte{0, 0, 0}, 100_000)...) // empty blocks
	testheap.Bound(t, 32<<20, "a frame of empty blocks", func() { Unwrap(many, 1<<30) })
}
