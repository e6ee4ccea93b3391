package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

const (
	// maxRatio is how far real sections unpack, and more: xz and zstd could make
	// a gigabyte of a page.
	maxRatio = 32
	// freeUnpack may be unpacked whatever it was packed to.
	freeUnpack = 1 << 20
	// maxZstdWindow is that of the zstd command without --long.
	maxZstdWindow = 128 << 20
)

// UnpackLimit is how many bytes size packed bytes may unpack to, most at most.
func UnpackLimit(size, most uint64) uint64 { return min(most, freeUnpack+size*maxRatio) }

// Packed is the content of one section as it lies in the file.
type Packed struct {
	Name string              // with its dot, without the z of old compressed ones
	Size uint64              // bytes unpacked, as the file claims
	how  elf.CompressionType // 0: it is not packed
	data []byte
}

// Packed reads a section of at most limit bytes, and does not unpack it. Errors:
// ErrTooBig, ErrDamaged, the reader's.
func (r Reader) Packed(s *Section, limit uint64) (Packed, error) {
	b, err := r.Bytes(s.Span(), limit, s.Name)
	if err != nil {
		return Packed{}, err
	}
	p := Packed{Name: strings.Replace(s.Name, ".zdebug_", ".debug_", 1), Size: uint64(len(b)), data: b}
	le := binary.LittleEndian
	switch old := p.Name != s.Name; {
	case s.Flags&elf.SHF_COMPRESSED != 0 && len(b) >= 24:
		p.how, p.Size, p.data = elf.CompressionType(le.Uint32(b)), le.Uint64(b[8:]), b[24:]
		if p.how != elf.COMPRESS_ZLIB && p.how != elf.COMPRESS_ZSTD {
			return p, fmt.Errorf("%s: compression %v is not known", s.Name, p.how)
		}
	case old && len(b) >= 12 && string(b[:4]) == "ZLIB":
		p.how, p.Size, p.data = elf.COMPRESS_ZLIB, binary.BigEndian.Uint64(b[4:]), b[12:]
	case s.Flags&elf.SHF_COMPRESSED != 0 || old:
		return p, fmt.Errorf("%s: %d bytes hold no header: %w", s.Name, len(b), ErrDamaged)
	}
	return p, nil
}

// Held is how many bytes it takes in memory as long as it is not unpacked; 0 if it
// is not packed.
func (p *Packed) Held() uint64 {
	if p.how == 0 {
		return 0
	}
	return uint64(len(p.data))
}

// Unpack gives the section's bytes: exactly as many as the file claims, most at
// most. The packed ones are dropped.
func (p *Packed) Unpack(most uint64) (b []byte, err error) {
	if p.how == 0 {
		return p.data, nil
	}
	if most = UnpackLimit(uint64(len(p.data)), most); p.Size > most {
		return nil, fmt.Errorf("%s: %d bytes unpacked of %d, at most %d: %w", p.Name, p.Size, len(p.data), most, ErrTooBig)
	}
	if p.how == elf.COMPRESS_ZLIB {
		b, err = unpackZlib(p.data, p.Size)
	} else {
		b, err = unpackZstd(p.data, p.Size)
	}
	if err == nil && uint64(len(b)) != p.Size {
		err = fmt.Errorf("%d bytes unpacked of %d: %w", len(b), p.Size, ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	p.how, p.data = 0, b
	return b, nil
}

func unpackZlib(data []byte, size uint64) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	b := make([]byte, size)
	n, err := io.ReadFull(z, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return b[:n], err
}

// unpackZstd unpacks in one piece: a stream would take what memory its window is
// said to need.
func unpackZstd(data []byte, size uint64) ([]byte, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return z.DecodeAll(data, make([]byte, 0, size))
}
