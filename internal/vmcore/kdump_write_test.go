package vmcore

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"slices"
	"sync"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// kdumpFile is how a kdump-compressed file is to be written.
type kdumpFile struct {
	version uint32
	machine string
	status  uint32 // the way of packing, and more
	notes   []byte
	image   *image
	share   bool // pages that are equal share one, and not those of zeros only
	unpaid  int  // the last descriptors that a writer without space did not write
}

func kdumpOf(m *image, status uint32) *kdumpFile {
	return &kdumpFile{version: 6, machine: "x86_64", status: status, image: m, notes: notesOf(2, prstatusAMD64, vmcoreinfo)}
}

// bytes is the file, laid out as makedumpfile does: all pages of zeros share one.
func (f *kdumpFile) bytes(t testing.TB) []byte {
	t.Helper()
	le, m := binary.LittleEndian, f.image
	subBlocks := (kdumpSubHeader + len(f.notes) + m.page - 1) / m.page
	mapBlocks := (len(m.kinds) + 8*m.page - 1) / (8 * m.page)
	h := make([]byte, m.page)
	copy(h, "KDUMP   ")
	le.PutUint32(h[8:], f.version)
	copy(h[12+4*65:], f.machine)
	for i, v := range []int{int(f.status), m.page, subBlocks, 2 * mapBlocks, len(m.kinds)} {
		le.PutUint32(h[424+4*i:], uint32(v))
	}
	sub := make([]byte, subBlocks*m.page)
	f.sub(sub, len(m.kinds))
	ram, have := make([]byte, mapBlocks*m.page), make([]byte, mapBlocks*m.page)
	for i, k := range m.kinds {
		if k != hole {
			ram[i/8] |= 1 << (i % 8)
		}
		if k == held {
			have[i/8] |= 1 << (i % 8)
		}
	}
	// What follows the last frame means nothing.
	for i := len(m.kinds); i < 8*len(ram); i++ {
		ram[i/8] |= 1 << (i % 8)
		have[i/8] |= 1 << (i % 8)
	}
	head := slices.Concat(h, sub, ram, have)
	table, data := f.pages(t, len(head))
	return slices.Concat(head, table, data)
}

// sub fills the sub header, of which versions before the sixth have less.
func (f *kdumpFile) sub(b []byte, frames int) {
	le, block := binary.LittleEndian, f.image.page
	le.PutUint32(b[8:], 1)
	le.PutUint64(b[48:], uint64(block+kdumpSubHeader))
	le.PutUint64(b[56:], uint64(len(f.notes)))
	if i := bytes.Index(f.notes, []byte("OSRELEASE=")); i >= 0 {
		le.PutUint64(b[32:], uint64(block+kdumpSubHeader+i))
		le.PutUint64(b[40:], uint64(len(vmcoreinfo)))
	}
	le.PutUint64(b[96:], uint64(frames))
	copy(b[kdumpSubHeader:], f.notes)
	clear(b[map[uint32]int{0: 8, 1: 12, 2: 32, 3: 48, 4: 64, 5: 80, 6: kdumpSubHeader}[f.version]:kdumpSubHeader])
}

// pages makes the descriptors, which lie at an offset, and the pages behind them.
func (f *kdumpFile) pages(t testing.TB, off int) (table, data []byte) {
	t.Helper()
	m := f.image
	n := int(m.count(held))
	start := off + n*descSize
	data = make([]byte, m.page) // the page of zeros
	zero := desc{off: uint64(start), size: uint32(m.page)}
	known := map[string]desc{string(data): zero}
	for i, k := range m.kinds {
		if k != held {
			continue
		}
		d, ok := known[string(m.data[i])]
		if !ok {
			b, flags := packPage(t, m.data[i], f.status)
			d = desc{off: uint64(start + len(data)), size: uint32(len(b)), flags: flags}
			data = append(data, b...)
			if f.share {
				known[string(m.data[i])] = d
			}
		}
		table = appendDesc(table, d)
	}
	clear(table[(n-f.unpaid)*descSize:])
	return table, data
}

func appendDesc(b []byte, d desc) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, d.off)
	b = le.AppendUint32(b, d.size)
	b = le.AppendUint32(b, d.flags)
	return le.AppendUint64(b, 0)
}

var zstdPacker = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
})

// packPage packs as a status asks for, if that makes the page smaller.
func packPage(t testing.TB, page []byte, status uint32) ([]byte, uint32) {
	t.Helper()
	var b []byte
	how := status & (byZlib | bySnappy | byZstd)
	switch how {
	case byZlib:
		var w bytes.Buffer
		z := zlib.NewWriter(&w)
		if _, err := z.Write(page); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		b = w.Bytes()
	case bySnappy:
		b = snappy.Encode(nil, page)
	case byZstd:
		z, err := zstdPacker()
		if err != nil {
			t.Fatal(err)
		}
		b = z.EncodeAll(page, nil)
	}
	if how == 0 || len(b) >= len(page) {
		return page, 0
	}
	return b, how
}
