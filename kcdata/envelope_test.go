package kcdata

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// big is a buffer of some size that compresses.
func big(t testing.TB, n int) []byte {
	rng := rand.New(rand.NewPCG(3, 3))
	w := NewWriter(make([]byte, n*1024+1024))
	ok(t, w.Begin(MagicStackshot))
	for id := range uint64(n) {
		ok(t, w.BeginContainer(TypeTask, id))
		ok(t, w.Struct(TypeTaskSnapshot, &TaskSnapshot{UniquePid: id, Faults: rng.Uint32()}))
		ok(t, w.BeginContainer(TypeThread, id))
		ok(t, w.Struct(TypeLinuxThread, &LinuxThread{Tid: uint32(id), Utime: rng.Uint64N(1 << 30)}))
		ok(t, w.Uint64s(TypeKernStackLR64, []uint64{0xffffffff81000000 + rng.Uint64N(1<<20), 0xffffffff82000000, 1, 2}))
		ok(t, w.EndContainer(id))
		ok(t, w.EndContainer(id))
	}
	ok(t, w.End())
	return w.Written()
}

func TestK11CompressUnwrapRoundTrip(t *testing.T) {
	for _, plain := range [][]byte{around(), rich(t), big(t, 300)} {
		for e := EnvelopeNone; e <= EnvelopeZstd; e++ {
			var b bytes.Buffer
			ok(t, Compress(&b, append(bytes.Clone(plain), 1, 2, 3), e))
			got, env, err := Unwrap(b.Bytes(), int64(len(plain)))
			ok(t, err)
			if env != e || !bytes.Equal(got, plain) {
				t.Errorf("%v: came back as %v, %d of %d bytes equal %v", e, env, len(got), len(plain), bytes.Equal(got, plain))
			}
		}
	}
}

// The three ways to write an envelope: whole, in pieces to a pipe, in pieces to
// a file behind other bytes.
func TestK11StreamingGivesTheSameBytes(t *testing.T) {
	plain := big(t, 100)
	rng := rand.New(rand.NewPCG(5, 5))
	for e := EnvelopeNone; e <= EnvelopeZstd; e++ {
		var pipe bytes.Buffer
		ok(t, inPieces(rng, &pipe, plain, e))
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		ok(t, err)
		_, err = f.WriteString("before")
		ok(t, err)
		ok(t, inPieces(rng, f, plain, e))
		_, err = f.WriteString("after")
		ok(t, err)
		ok(t, f.Close())
		file, err := os.ReadFile(f.Name())
		ok(t, err)
		file = bytes.TrimSuffix(bytes.TrimPrefix(file, []byte("before")), []byte("after"))
		for what, b := range map[string][]byte{"pipe": pipe.Bytes(), "file": file} {
			got, _, err := Unwrap(b, 1<<20)
			ok(t, err)
			if !bytes.Equal(got, plain) {
				t.Errorf("%v, %s: plain bytes differ", e, what)
			}
		}
	}
}

func inPieces(rng *rand.Rand, w io.Writer, plain []byte, e Envelope) error {
	c, err := NewCompressor(w, e)
	if err != nil {
		return err
	}
	for len(plain) > 0 {
		n := min(rng.IntN(70), len(plain))
		if _, err := c.Write(plain[:n]); err != nil {
			return err
		}
		plain = plain[n:]
	}
	return c.Close()
}

// The stream inside is what the standard library's zlib makes of the items.
func TestK11ZlibWitness(t *testing.T) {
	plain := big(t, 50)
	var b bytes.Buffer
	ok(t, Compress(&b, plain, EnvelopeZlib))
	h, err := parseEnvelope(&b)
	ok(t, err)
	z, err := zlib.NewReader(io.LimitReader(&b, int64(h.compressed)))
	ok(t, err)
	got, err := io.ReadAll(z)
	ok(t, err)
	if !bytes.Equal(got, plain[headerSize:len(plain)-headerSize]) {
		t.Error("the standard library reads other bytes")
	}

	var stream bytes.Buffer
	theirs := zlib.NewWriter(&stream)
	_, err = theirs.Write(got)
	ok(t, err)
	ok(t, theirs.Close())
	back, _, err := Unwrap(envelopeOf(t, algorithmZlib, stream.Bytes(), uint64(stream.Len()), uint64(len(got))), 1<<20)
	ok(t, err)
	want := bytes.Clone(plain)
	if !bytes.Equal(back, want) {
		t.Error("the standard library's stream unwraps to other bytes")
	}
}

// envelopeOf is an envelope with any numbers around any stream.
func envelopeOf(t testing.TB, algorithm uint64, stream []byte, compressed, plain uint64) []byte {
	w := NewWriter(make([]byte, 1024))
	ok(t, w.Begin(MagicCompressed))
	ok(t, w.Uint64Desc(descAlgorithm, algorithm))
	ok(t, w.Uint64Desc(descCompressed, compressed))
	ok(t, w.Uint64Desc(descPlain, plain))
	ok(t, w.Begin(MagicStackshot))
	return append(append(w.Written(), stream...), rawItem(BufferEnd, 0, 0)...)
}

func TestK11ZstdWitness(t *testing.T) {
	testneed.Live(t)
	testneed.Program(t, "zstd")
	plain := big(t, 50)
	var b bytes.Buffer
	ok(t, Compress(&b, plain, EnvelopeZstd))
	if got := pipe(t, b.Bytes(), "zstd", "-dc"); !bytes.Equal(got, plain) {
		t.Error("zstd -dc gives other bytes")
	}
	for _, level := range []string{"-1", "-19"} {
		got, env, err := Unwrap(pipe(t, plain, "zstd", "-c", level), 1<<20)
		ok(t, err)
		if env != EnvelopeZstd || !bytes.Equal(got, plain) {
			t.Errorf("what zstd -c %s wrote unwraps to other bytes", level)
		}
	}
}

func pipe(t *testing.T, in []byte, name string, args ...string) []byte {
	t.Helper()
	c := exec.Command(name, args...)
	c.Stdin = bytes.NewReader(in)
	out, err := c.Output()
	ok(t, err)
	return out
}

func deflated(t testing.TB, b []byte) []byte {
	var out bytes.Buffer
	z, err := zlib.NewWriterLevel(&out, 9)
	ok(t, err)
	_, err = z.Write(b)
	ok(t, err)
	ok(t, z.Close())
	return out.Bytes()
}

func TestK10UnwrapLimit(t *testing.T) {
	plain := big(t, 100)
	for e := EnvelopeNone; e <= EnvelopeZstd; e++ {
		var b bytes.Buffer
		ok(t, Compress(&b, plain, e))
		for _, limit := range []int64{-1, 0, 1, 31, 32, int64(len(plain)) - 1} {
			_, _, err := Unwrap(b.Bytes(), limit)
			wantFormat(t, err, ErrTooLarge)
		}
		if _, _, err := Unwrap(b.Bytes(), int64(len(plain))); err != nil {
			t.Errorf("%v at its own size: %v", e, err)
		}
	}
}

func TestK10UnwrapAttacks(t *testing.T) {
	body := rawItem(0x7777, 1<<20-headerSize, 0, make([]byte, 1<<20-headerSize)...)
	z := deflated(t, body)
	n, p := uint64(len(z)), uint64(len(body))
	truth := envelopeOf(t, algorithmZlib, z, n, p)
	if _, _, err := Unwrap(truth, 2<<20); err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(z)
	bad[len(bad)-1] ^= 1
	noEnd := bytes.Clone(truth)
	binary.LittleEndian.PutUint32(noEnd[len(noEnd)-headerSize:], 1)
	for _, c := range []struct {
		what string
		b    []byte
		want error
	}{
		{"promises less", envelopeOf(t, algorithmZlib, z, n, p-1), ErrBadSize},
		{"promises more", envelopeOf(t, algorithmZlib, z, n, p+1), ErrBadSize},
		{"promises the impossible", envelopeOf(t, algorithmZlib, z, n, 1033*n+1033), ErrBadSize},
		{"promises everything", envelopeOf(t, algorithmZlib, z, n, ^uint64(0)), ErrBadSize},
		{"stream of 2^64-1", envelopeOf(t, algorithmZlib, z, ^uint64(0), p), ErrTruncated},
		{"stream without its end", envelopeOf(t, algorithmZlib, z, n-1, p), ErrBadStream},
		{"wrong checksum", envelopeOf(t, algorithmZlib, bad, n, p), ErrBadStream},
		{"bytes behind the stream", envelopeOf(t, algorithmZlib, append(bytes.Clone(z), make([]byte, 5)...), n+5, p), ErrBadStream},
		{"unknown algorithm", envelopeOf(t, 2, z, n, p), ErrCompression},
		{"stored with two sizes", envelopeOf(t, algorithmNone, z, n, n+1), ErrBadSize},
		{"no end marker", noEnd, ErrBadStream},
		{"no sizes", append(rawItem(MagicCompressed, 0, 0), rawItem(MagicStackshot, 0, 0)...), ErrBadStream},
		{"envelope in an envelope", append(rawItem(MagicCompressed, 0, 0), rawItem(MagicCompressed, 0, 0)...), ErrBadMagic},
		{"zstd frame cut behind the end marker", zstdOf(t, around())[:len(zstdOf(t, around()))-2], ErrTruncated},
		{"zstd frame of nothing", []byte("\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00"), ErrTruncated},
		{"stored, promises more", envelopeOf(t, algorithmNone, around()[headerSize:], 1<<40, 1<<40), ErrBadSize},
		{"broken zstd frame", []byte{0x28, 0xB5, 0x2F, 0xFD, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, ErrBadStream},
	} {
		plain, _, err := Unwrap(c.b, 8<<20)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
			continue
		}
		if _, lost := Check(plain); strings.HasPrefix(c.what, "promises ") && lost != nil {
			t.Errorf("%s: %d bytes, %v", c.what, len(plain), lost)
		}
		wantFormat(t, err, c.want)
	}
	stored := envelopeOf(t, algorithmNone, rawItem(TypeTimebase, 16, 0x88, make([]byte, 16)...), 32, 32)
	got, _, err := Unwrap(stored, 1<<20)
	ok(t, err)
	if len(got) != 64 {
		t.Errorf("stored: %d bytes, want 64", len(got))
	}
}

func TestCompressorWantsAWholeBuffer(t *testing.T) {
	plain := rich(t)
	for _, n := range []int{0, 8, 16, 31, len(plain) - 1} {
		c, err := NewCompressor(new(bytes.Buffer), EnvelopeZlib)
		ok(t, err)
		_, err = c.Write(plain[:n])
		ok(t, err)
		wantFormat(t, c.Close(), ErrTruncated)
	}
	if _, err := NewCompressor(io.Discard, 9); err == nil {
		t.Error("an envelope that does not exist was made")
	}
}
