package unwind

import (
	"cmp"
	"encoding/binary"
	"slices"

	"stackshot/kcdata"
)

// memory is what is known of a thread's stack: the copied pieces, and the words of
// its frame-pointer chain.
type memory struct {
	pieces  []kcdata.UserBytes     // ascending
	links   []kcdata.LinuxUserLink // ascending by FP
	last    uint64                 // the frame pointer stored at the last link,
	hasLast bool                   // if it is known
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

// takeChain keeps the chain as far as it goes up the stack. Every real one does, so
// the links are in order.
func (m *memory) takeChain(chain []kcdata.LinuxUserLink, complete bool) {
	n := 0
	for n < len(chain) && (n == 0 || chain[n].FP > chain[n-1].FP) {
		n++
	}
	m.links, m.hasLast = chain[:n], complete
	if n < len(chain) {
		m.last, m.hasLast = chain[n].FP, true
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
	if b := m.from(addr); len(b) >= 8 {
		return binary.LittleEndian.Uint64(b), true
	}
	return 0, false
}

// from is what was copied from addr on, in one piece.
func (m *memory) from(addr uint64) []byte {
	i, found := slices.BinarySearchFunc(m.pieces, addr, func(p kcdata.UserBytes, a uint64) int { return cmp.Compare(p.Addr, a) })
	if !found {
		i--
	}
	if i < 0 || addr-m.pieces[i].Addr >= uint64(len(m.pieces[i].Data)) {
		return nil
	}
	return m.pieces[i].Data[addr-m.pieces[i].Addr:]
}

func (m *memory) linked(addr uint64) (uint64, bool) {
	if i, ok := m.link(addr - 8); ok {
		return m.links[i].PC, true
	}
	i, ok := m.link(addr)
	switch {
	case !ok:
		return 0, false
	case i+1 < len(m.links): // there lies the frame pointer of the next link
		return m.links[i+1].FP, true
	}
	return m.last, m.hasLast
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
		b := m.from(addr + uint64(i))
		if len(b) == 0 {
			return 0, false
		}
		v |= uint64(b[0]) << (8 * i)
	}
	return v, true
}
