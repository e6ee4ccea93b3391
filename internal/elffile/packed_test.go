package elffile

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"errors"
	"fmt"
	"testing"

	"stackshot/internal/testheap"
)

// No more is unpacked than the section claims, and no less is believed.
func TestPackedSectionsClaimTheirSize(t *testing.T) {
	for claim, ok := range map[uint64]bool{4: true, 3: true, 5: false, 1 << 62: false} {
		d := Packed{Name: ".debug_x", Size: claim, how: elf.COMPRESS_ZLIB, data: packed(t, "aaaa")}
		b, err := d.Unpack(1 << 30)
		if (err == nil) != ok || ok && uint64(len(b)) != claim {
			t.Errorf("%d claimed: %q, %v", claim, b, err)
		}
	}
}

func packed(t testing.TB, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, err := w.Write([]byte(s))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A section that unpacks to a thousand times its size is none of a real file.
func TestZlibBomb(t *testing.T) {
	const size = 64 << 20
	bomb := packed(t, string(make([]byte, size)))
	d := Packed{Name: ".debug_str", Size: size, how: elf.COMPRESS_ZLIB, data: bomb}
	if b, err := d.Unpack(1 << 30); !errors.Is(err, ErrTooBig) {
		t.Errorf("%d bytes became %d, %v", len(bomb), len(b), err)
	}
}

// The window that a zstd frame says to need is not taken.
func TestZstdWindow(t *testing.T) {
	frame := []byte{
		0x28, 0xb5, 0x2f, 0xfd, 0x00,
		(27 - 10) << 3,             // window of 128 MiB
		4<<3 | 1<<1 | 1, 0, 0, 'a', // last block: four times this
	}
	d := Packed{Name: ".debug_str", Size: 4, how: elf.COMPRESS_ZSTD, data: frame}
	testheap.Bound(t, 64<<20, fmt.Sprintf("a frame of %d bytes", len(frame)), func() {
		if b, err := d.Unpack(1 << 30); err != nil || string(b) != "aaaa" {
			t.Errorf("%q, %v", b, err)
		}
	})
}
