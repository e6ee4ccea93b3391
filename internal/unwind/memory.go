package unwind

import (
	"cmp"
	"encoding/binary"
	"slices"

	"stackshot/kcdata"
)

// memory is all that is known of a thread's stack: the copied pieces, and the
// words of its frame-pointer chain.
type memory struct {
	pieces []kcdata.UserBytes     // ascending
	links  []kcdata.LinuxUserLink // ascending by FP
	next   []uint64               // for each link the frame pointer stored there
	known  []bool                 // whether next is known
}

func newMemory(in *Input) *memory {
	m := &memory{pieces: in.Stack}
	byAddr := func(a, b kcdata.UserBytes) int { return cmp.Compare(a.Addr, b.Addr) }
	if !slices.IsSortedFunc(m.pieces, byAddr) {
		m.pieces = slices.Clone(m.pieces)
		slices.SortStableFunc(m.pieces, byAddr)
	}
	m.takeChain(in.Chain, in.ChainComplete)
	return m
}

// takeChain keeps the chain as long as it goes up the stack, which every real
// one does: the links are then sorted by themselves.
func (m *memory) takeChain(chain []kcdata.LinuxUserLink, complete bool) {
	n := 0
	for n < len(chain) && (n == 0 || chain[n].FP > chain[n-1].FP) {
		n++
	}
	m.links = chain[:n]
	m.next, m.known = make([]uint64, n), make([]bool, n)
	for i := range n {
		switch {
		case i+1 < len(chain):
			m.next[i], m.known[i] = chain[i+1].FP, true
		case complete:
			m.known[i] = true
		}
	}
}

// word reads eight bytes; fromChain says that only the chain knows them.
func (m *memory) word(addr uint64) (v uint64, fromChain, ok bool) {
	if v, ok := m.copied(addr); ok {
		return v, false, true
	}
	v, ok = m.linked(addr)
	return v, true, ok
}

func (m *memory) copied(addr uint64) (uint64, bool) {
	i, found := slices.BinarySearchFunc(m.pieces, addr, func(p kcdata.UserBytes, a uint64) int { return cmp.Compare(p.Addr, a) })
	if !found {
		i--
	}
	if i < 0 {
		return 0, false
	}
	off, data := addr-m.pieces[i].Addr, m.pieces[i].Data
	if uint64(len(data)) < 8 || off > uint64(len(data))-8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(data[off:]), true
}

func (m *memory) linked(addr uint64) (uint64, bool) {
	if i, ok := m.link(addr - 8); ok {
		return m.links[i].PC, true
	}
	if i, ok := m.link(addr); ok && m.known[i] {
		return m.next[i], true
	}
	return 0, false
}

func (m *memory) link(fp uint64) (int, bool) {
	return slices.BinarySearchFunc(m.links, fp, func(l kcdata.LinuxUserLink, a uint64) int { return cmp.Compare(l.FP, a) })
}

// bytes reads n bytes, of the copied pieces only.
func (m *memory) bytes(addr uint64, n int) (uint64, bool) {
	if n == 8 {
		v, _, ok := m.word(addr)
		return v, ok
	}
	var v uint64
	for i := range n {
		b, ok := m.byteAt(addr + uint64(i))
		if !ok {
			return 0, false
		}
		v |= uint64(b) << (8 * i)
	}
	return v, true
}

func (m *memory) byteAt(addr uint64) (byte, bool) {
	i, found := slices.BinarySearchFunc(m.pieces, addr, func(p kcdata.UserBytes, a uint64) int { return cmp.Compare(p.Addr, a) })
	if !found {
		i--
	}
	if i < 0 || addr-m.pieces[i].Addr >= uint64(len(m.pieces[i].Data)) {
		return 0, false
	}
	return m.pieces[i].Data[addr-m.pieces[i].Addr], true
}
