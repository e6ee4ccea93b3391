package vmcore

import (
	"encoding/binary"
	"math/bits"
)

const (
	// leastSector is how many page frames have one entry of the index, at least.
	leastSector = 1 << 15
	// maxRanks bounds the entries of the index, each of 8 bytes.
	maxRanks = 1 << 19
)

// bitmap is the second bitmap of a kdump-compressed file: which page frames the file holds. The n-th set bit has the
// n-th page descriptor.
type bitmap struct {
	*source
	off    uint64 // in the file
	frames uint64 // bits
	sector uint64 // bits of which one entry of before tells how many are set before them
	before []uint64
	have   int // index of the sector in bits, -1 if there is none
	bits   []byte
}

// newBitmap reads the bitmap once, to count.
func newBitmap(s *source, off, frames uint64) (*bitmap, error) {
	m := &bitmap{source: s, off: off, frames: frames, sector: leastSector, have: -1}
	for frames/m.sector >= maxRanks {
		m.sector *= 2
	}
	n := (frames + m.sector - 1) / m.sector
	m.before, m.bits = make([]uint64, n), make([]byte, m.sector/8)
	var set uint64
	for i := range m.before {
		m.before[i] = set
		if err := m.load(i); err != nil {
			return nil, err
		}
		set += ones(m.bits)
	}
	return m, nil
}

// load reads a sector. What lies behind the last frame reads as 0.
func (m *bitmap) load(i int) error {
	if m.have == i {
		return nil
	}
	m.have = -1
	if err := readBits(m.source, m.bits, m.off, uint64(i)*m.sector, m.frames); err != nil {
		return err
	}
	m.have = i
	return nil
}

// readBits reads the bits from number first on, a multiple of 8, into b. Bits from frames on are 0.
func readBits(s *source, b []byte, off, first, frames uint64) error {
	clear(b)
	left := frames - first
	some := b[:min(uint64(len(b)), (left+7)/8)]
	if err := s.read(some, off+first/8, "bitmap"); err != nil {
		return err
	}
	if left < uint64(len(some))*8 {
		some[len(some)-1] &= 1<<(left%8) - 1
	}
	return nil
}

// lookup says whether the file holds a frame, and how many frames before it it holds.
func (m *bitmap) lookup(frame uint64) (held bool, before uint64, err error) {
	i := int(frame / m.sector)
	if err := m.load(i); err != nil {
		return false, 0, err
	}
	at := frame % m.sector
	before = m.before[i] + ones(m.bits[:at/8]) + uint64(bits.OnesCount8(m.bits[at/8]&(1<<(at%8)-1)))
	return m.bits[at/8]>>(at%8)&1 != 0, before, nil
}

// ones counts the bits that are set.
func ones(b []byte) (n uint64) {
	for ; len(b) >= 8; b = b[8:] {
		n += uint64(bits.OnesCount64(binary.LittleEndian.Uint64(b)))
	}
	for _, v := range b {
		n += uint64(bits.OnesCount8(v))
	}
	return n
}
