package vmcore

import (
	"bytes"
	"errors"
	"testing"

	"stackshot/internal/testheap"

	"github.com/klauspost/compress/snappy"
)

// Notes that never end, and a vmcoreinfo that is too long.
func TestHostileNotes(t *testing.T) {
	var n notes
	s := &source{r: sparse{fill: 1}, size: 1 << 50, path: "core"}
	if err := n.read(s, 0, 1<<50); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	for _, b := range [][]byte{
		notesOf(maxNotes/2+1, 0, ""),
		note("VMCOREINFO", 0, make([]byte, maxInfo+1)),
		{10, 0, 0, 0, 255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0},
		{255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0},
	} {
		s := &source{r: bytes.NewReader(b), size: uint64(len(b)), path: "core"}
		if err := new(notes).read(s, 0, s.size); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	}
}

// Packed pages that unpack to more or less than a page, or to nothing sensible.
func TestHostilePages(t *testing.T) {
	big, _ := zstdPacker()
	zeros := make([]byte, 4<<20)
	zlibOf := func(b []byte) []byte { p, _ := packPage(t, b, byZlib); return p }
	wide := zstdHead(27)
	for name, v := range map[string]struct {
		src   []byte
		flags uint32
	}{
		"zlib bomb": {zlibOf(zeros), byZlib}, "zlib short": {zlibOf(zeros[:4000]), byZlib},
		"zlib one more": {zlibOf(zeros[:4097]), byZlib}, "zlib cut": {zlibOf(zeros[:4096])[:12], byZlib},
		"snappy bomb": {snappy.Encode(nil, zeros), bySnappy}, "snappy short": {snappy.Encode(nil, zeros[:4000]), bySnappy},
		"snappy huge": {[]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}, bySnappy},
		"zstd bomb":   {big.EncodeAll(zeros, nil), byZstd}, "zstd short": {big.EncodeAll(zeros[:4000], nil), byZstd},
		"zstd twice": {append(big.EncodeAll(zeros[:4096], nil), big.EncodeAll(zeros[:4096], nil)...), byZstd},
		"zstd wide":  {wide, byZstd}, "raw short": {zeros[:4000], 0}, "lzo": {zeros[:10], byLZO}, "two": {zeros[:10], byZlib | byZstd},
		"nothing": {nil, byZstd},
	} {
		u := &unpacker{}
		dst := make([]byte, 4096)
		testheap.Bound(t, 16<<20, name, func() {
			if err := u.unpack(dst, v.src, v.flags); err == nil {
				t.Errorf("%s: no error", name)
			}
		})
		// What was broken leaves nothing behind.
		page := randomPage(rng(t, 3), 4096)
		for _, how := range []uint32{byZlib, bySnappy, byZstd} {
			p, flags := packPage(t, page, how)
			if err := u.unpack(dst, p, flags); err != nil || !bytes.Equal(dst, page) {
				t.Errorf("after %s: %v", name, err)
			}
		}
	}
}

// zstdHead is a frame of unknown size whose window has 2^log bytes, and one block of 4096 zeros.
func zstdHead(log byte) []byte {
	return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3}, 0x03, 0x80, 0x00, 0)
}
