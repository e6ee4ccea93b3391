package vmcore

import (
	"bytes"
	"testing"

	"stackshot/internal/testheap"
)

// FuzzOpen reads anything as a dump.
func FuzzOpen(f *testing.F) {
	for _, file := range samples(f) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		testheap.Bound(t, memoryLimit, "file", func() { use(t, bytes.NewReader(file), uint64(len(file))) })
	})
}

// FuzzUnpack unpacks anything as a page.
func FuzzUnpack(f *testing.F) {
	page := bytes.Repeat([]byte("a page of text "), 300)[:4096]
	for _, how := range []uint32{0, byZlib, byLZO, bySnappy, byZstd} {
		b, flags := packPage(f, page, how)
		f.Add(b, flags)
	}
	u := &unpacker{}
	good, _ := packPage(f, page, byZlib)
	f.Fuzz(func(t *testing.T, src []byte, flags uint32) {
		dst := make([]byte, 4096)
		testheap.Bound(t, memoryLimit, "page", func() { _ = u.unpack(dst, src, flags) })
		if err := u.unpack(dst, good, byZlib); err != nil || !bytes.Equal(dst, page) {
			t.Fatalf("the next page: %v", err)
		}
	})
}
