package kcdata

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"stackshot/internal/testheap"
)

// endless is what would be read for ever.
type endless struct {
	again []byte
	n     int // bytes that were read
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.again[(e.n+i)%len(e.again)]
	}
	e.n += len(p)
	return len(p), nil
}

// ahead is the most that is read and not used, bytes.
const ahead = mostRead + bufferSize

// What stands behind a file's end, in whatever envelope, is said and is not read, be it without end.
func TestK10ReadEndsAtTheEnd(t *testing.T) {
	for e := EnvelopeNone; e <= EnvelopeZstd; e++ {
		for _, plain := range [][]byte{around(), rich(t), big(t, 300)} {
			var b bytes.Buffer
			ok(t, Compress(&b, plain, e))
			file := b.Bytes()
			frame := zstdOf(t, plain)
			for what, tail := range map[string][]byte{
				"zeros": {0}, "0xff": {0xff}, "the file again": file, "an end marker": rawItem(BufferEnd, 0, 0),
				"a frame": frame, "a frame that was cut": frame[:len(frame)-5], "a frame to skip": {0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff},
			} {
				rest := &endless{again: tail}
				f, err := Read(io.MultiReader(bytes.NewReader(file), rest), 0, 1<<30)
				if ok(t, err); !bytes.Equal(f.Plain, plain) || f.Envelope != e || f.Size != int64(len(file)) || rest.n > ahead {
					t.Errorf("%v, then %s: %d bytes of %d, %d of %d in the file, %d behind it", e, what, len(f.Plain), len(plain), f.Size, len(file), rest.n)
				}
				if want := fmt.Sprintf("bytes behind its end, from offset %#x,", len(file)); !strings.HasPrefix(f.Follows, want) {
					t.Errorf("%v, then %s: said %q", e, what, f.Follows)
				}
				whole := append(bytes.Clone(file), tail...)
				for n := range min(len(tail)+1, 40) { // however few
					f, err := Read(bytes.NewReader(whole[:len(file)+n]), int64(len(file)+n), 1<<30)
					ok(t, err)
					if says := strings.HasPrefix(f.Follows, fmt.Sprint(n, " bytes behind its end")); says != (n > 0) || !bytes.Equal(f.Plain, plain) {
						t.Fatalf("%v, then %d bytes of %s: said %q", e, n, what, f.Follows)
					}
				}
			}
		}
	}
}

// What stands behind the end marker within a compressed stream is not unpacked.
func TestK10BombBehindTheEnd(t *testing.T) {
	plain := rich(t)
	bomb := make([]byte, 256<<20)
	body := append(plain[headerSize:len(plain):len(plain)], bomb...)
	stream := deflated(t, body)
	frame := zstdOf(t, plain, bomb)
	for what, file := range map[string][]byte{
		"zstd": frame, "zstd, the whole file again": zstdOf(t, plain, plain), "zstd, a byte": zstdOf(t, plain, []byte{1}),
		"zstd without its end": frame[:len(frame)-100], "zlib": envelopeOf(t, algorithmZlib, stream, uint64(len(stream)), uint64(len(body))),
		"stored": envelopeOf(t, algorithmNone, body, uint64(len(body)), uint64(len(body))),
	} {
		testheap.Bound(t, 16<<20, what, func() {
			f, err := Read(bytes.NewReader(file), int64(len(file)), 1<<30)
			if ok(t, err); !bytes.Equal(f.Plain, plain) || f.Size > ahead+int64(len(plain)) {
				t.Errorf("%s: %d bytes, want %d, of %d in the file", what, len(f.Plain), len(plain), f.Size)
			}
			if want := fmt.Sprintf("bytes behind the end marker, from offset %#x", len(plain)); !strings.HasPrefix(f.Follows, want) {
				t.Errorf("%s: said %q", what, f.Follows)
			}
		})
	}
}

// A file whose end is missing ends where zeros begin, as in a hole that a crash has left.
func TestK10HoleInsteadOfTheEnd(t *testing.T) {
	plain := big(t, 300)
	cut := plain[:len(plain)-headerSize]
	var open bytes.Buffer
	z, err := zstd.NewWriter(&open, zstd.WithEncoderConcurrency(1))
	ok(t, err)
	_, err = z.Write(cut)
	ok(t, err)
	ok(t, z.Flush())
	for what, file := range map[string][]byte{"plain": cut, "zstd": zstdOf(t, cut, make([]byte, 64<<20)), "zstd without its last block": open.Bytes()} {
		rest := &endless{again: []byte{0}}
		testheap.Bound(t, 16<<20, what, func() {
			f, err := Read(io.MultiReader(bytes.NewReader(file), rest), 1<<40, math.MaxInt64)
			wantFormat(t, err, ErrTruncated)
			if !bytes.HasPrefix(cut, f.Plain) || len(f.Plain) < len(cut)-mostRead || f.Follows != "" || rest.n > ahead+3*maxEmptyBlocks {
				t.Errorf("%s: %d bytes of %d, %d behind them, said %q", what, len(f.Plain), len(cut), rest.n, f.Follows)
			}
		})
	}
	for _, size := range []int{0, headerSize, maxEnvelopeHead} { // items in front of no stream
		rest := &endless{again: rawItem(TypeTimebase, uint32(size), 0, make([]byte, size)...)}
		_, err := Read(io.MultiReader(bytes.NewReader(rawItem(MagicCompressed, 0, 0)), rest), 0, 1<<30)
		if wantFormat(t, err, ErrTooLarge); rest.n > ahead+maxEnvelopeHead {
			t.Errorf("items of %d bytes: %d bytes read", size, rest.n)
		}
	}
}

// What the reader below says comes back as it is, with the offset until which all was read.
func TestReadError(t *testing.T) {
	plain := big(t, 300)
	for e := EnvelopeNone; e <= EnvelopeZstd; e++ {
		var b bytes.Buffer
		ok(t, Compress(&b, plain, e))
		for _, n := range []int{0, 3, 30, 300, b.Len() - 1} {
			f, err := Read(io.MultiReader(bytes.NewReader(b.Bytes()[:n]), broken{}), 0, 1<<30)
			if err != io.ErrClosedPipe || f.Size > int64(n) {
				t.Errorf("%v after %d bytes: %v, at %d", e, n, err, f.Size)
			}
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }
