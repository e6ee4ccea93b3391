package vmcore

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// maxZstd bounds what a zstd frame unpacks to and the window that it asks for, in bytes. A writer that does not know the size of
// a page beforehand asks for half a megabyte at level 1.
const maxZstd = 1 << 20

// unpacker unpacks pages. It keeps the state of the decoders.
type unpacker struct {
	packed bytes.Reader
	zlib   io.Reader // nil until it is needed
	zstd   *zstd.Decoder
}

// unpack fills dst, a page, out of src; flags say how it is packed.
func (u *unpacker) unpack(dst, src []byte, flags uint32) error {
	switch flags & (byZlib | byLZO | bySnappy | byZstd) {
	case 0:
		if len(src) != len(dst) {
			return fmt.Errorf("%d bytes of a page that is not packed", len(src))
		}
		copy(dst, src)
		return nil
	case byZlib:
		return u.unpackZlib(dst, src)
	case bySnappy:
		n, err := snappy.DecodedLen(src)
		if err == nil && n != len(dst) {
			return fmt.Errorf("snappy: unpacks to %d bytes", n)
		}
		if err == nil {
			_, err = snappy.Decode(dst, src)
		}
		return err
	case byZstd:
		return u.unpackZstd(dst, src)
	case byLZO:
		return errors.New("packed by lzo, which is not read; makedumpfile -c IN OUT packs by zlib")
	}
	return fmt.Errorf("flags %#x name no one way of packing", flags)
}

func (u *unpacker) unpackZlib(dst, src []byte) error {
	u.packed.Reset(src)
	var err error
	if u.zlib == nil {
		u.zlib, err = zlib.NewReader(&u.packed)
	} else {
		err = u.zlib.(zlib.Resetter).Reset(&u.packed, nil)
	}
	if err != nil {
		u.zlib = nil
		return fmt.Errorf("zlib: %w", err)
	}
	if n, err := io.ReadFull(u.zlib, dst); err != nil {
		return fmt.Errorf("zlib: after %d bytes: %w", n, err)
	}
	var more [1]byte
	if n, err := u.zlib.Read(more[:]); n != 0 || err != io.EOF {
		return fmt.Errorf("zlib: unpacks to more than a page (%w)", err)
	}
	return nil
}

func (u *unpacker) unpackZstd(dst, src []byte) (err error) {
	if u.zstd == nil {
		u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxZstd))
		if err != nil {
			return err
		}
	}
	out, err := u.zstd.DecodeAll(src, dst[:0:len(dst)])
	if err == nil && len(out) != len(dst) {
		err = fmt.Errorf("unpacks to %d bytes", len(out))
	}
	if err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	copy(dst, out) // the decoder may have taken other memory
	return nil
}
