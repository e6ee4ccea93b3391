package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// Any frames come out as they went in, whatever the body.
func TestFramesComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var stream bytes.Buffer
	var want []Frame
	for i := range 200 {
		f := Frame{Kind: byte(rng.IntN(256)), Body: make([]byte, rng.IntN(i*i+1))}
		for j := range f.Body {
			f.Body[j] = byte(rng.IntN(256))
		}
		if err := Write(&stream, f.Kind, f.Body); err != nil {
			t.Fatal(err)
		}
		want = append(want, f)
	}
	for i, w := range want {
		got, err := Read(&stream)
		if err != nil || got.Kind != w.Kind || !bytes.Equal(got.Body, w.Body) {
			t.Fatalf("frame %d: %q of %d bytes, %v; want %q of %d", i, got.Kind, len(got.Body), err, w.Kind, len(w.Body))
		}
	}
	if _, err := Read(&stream); err != io.EOF {
		t.Fatalf("after the last frame: %v, want EOF", err)
	}
}

// A frame with any one bit turned over, or cut anywhere, is refused.
func TestDamagedFrameIsRefused(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, Output, []byte("--- PASS: TestX (0.00s)\n")); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	for i := range len(whole) * 8 {
		bad := bytes.Clone(whole)
		bad[i/8] ^= 1 << (i % 8)
		// A longer length makes it a frame that is cut short.
		if f, err := Read(bytes.NewReader(bad)); !errors.Is(err, ErrGarbled) && err != io.ErrUnexpectedEOF {
			t.Errorf("bit %d turned over: %q %q, %v", i, f.Kind, f.Body, err)
		}
	}
	for n := 1; n < len(whole); n++ {
		if _, err := Read(bytes.NewReader(whole[:n])); err == nil || err == io.EOF {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	if err := Write(io.Discard, Output, make([]byte, MaxBody+1)); err == nil {
		t.Error("a frame over MaxBody was written")
	}
}
