package vmcore

import "encoding/binary"

// descSize is that of struct page_desc, in bytes.
const descSize = 24

// desc says where a page lies in the file, and how.
type desc struct {
	off   uint64
	size  uint32
	flags uint32
}

func parseDesc(b []byte) desc {
	le := binary.LittleEndian
	return desc{off: le.Uint64(b), size: le.Uint32(b[8:]), flags: le.Uint32(b[12:])}
}

// kdumpMemory is the memory of a kdump-compressed file.
type kdumpMemory struct {
	*source
	*kdumpHead
	held *bitmap
	one  unpacker
	pack []byte // room for one packed page

	page []byte // the page that was unpacked last
	last uint64 // its frame
	have bool
}

func newKdumpMemory(s *source, h *kdumpHead) (*kdumpMemory, error) {
	held, err := newBitmap(s, h.heldMap(), h.frames)
	if err != nil {
		return nil, err
	}
	return &kdumpMemory{source: s, kdumpHead: h, held: held,
		pack: make([]byte, h.block), page: make([]byte, h.block)}, nil
}

func (m *kdumpMemory) readPhys(p []byte, pa uint64) error {
	for len(p) > 0 {
		frame, skip := pa/m.block, pa%m.block
		if err := m.load(frame); err != nil {
			return m.atAddress(pa, err)
		}
		n := copy(p, m.page[skip:])
		p, pa = p[n:], pa+uint64(n)
	}
	return nil
}

// load unpacks a frame into page.
func (m *kdumpMemory) load(frame uint64) error {
	switch {
	case frame >= m.frames:
		return ErrOutside
	case m.have && m.last == frame:
		return nil
	}
	held, before, err := m.held.lookup(frame)
	if err != nil {
		return err
	}
	if !held {
		var ram [1]byte
		if err := m.read(ram[:], m.ramMap()+frame/8, "bitmap"); err != nil {
			return err
		}
		if ram[0]>>(frame%8)&1 != 0 {
			return ErrAbsent
		}
		return ErrOutside
	}
	var b [descSize]byte
	at := m.descStart() + before*descSize
	if err := m.read(b[:], at, "page descriptor"); err != nil {
		return err
	}
	m.have = false
	if err := m.unpackAt(m.page, parseDesc(b[:]), at); err != nil {
		return err
	}
	m.last, m.have = frame, true
	return nil
}

// plausible says whether a packed page can lie where a descriptor says.
func (m *kdumpMemory) plausible(d desc) bool {
	return d.size > 0 && uint64(d.size) <= m.block && m.holds(d.off, uint64(d.size))
}

// checkDesc says whether the descriptor that lies at an offset of the file can be right. A makedumpfile that runs out of
// space writes no more descriptors, which then read as zeros; no page lies at offset 0.
func (m *kdumpMemory) checkDesc(d desc, at uint64) error {
	switch {
	case d.off == 0:
		return ErrAbsent
	case !m.plausible(d):
		return m.damaged(at, "a packed page of %d bytes of at most %d at %#x: the file ends at %#x", d.size, m.block, d.off, m.source.size)
	}
	return nil
}

// unpackAt reads and unpacks one page; its descriptor lies at an offset of the file.
func (m *kdumpMemory) unpackAt(dst []byte, d desc, at uint64) error {
	if err := m.checkDesc(d, at); err != nil {
		return err
	}
	if err := m.read(m.pack[:d.size], d.off, "packed page"); err != nil {
		return err
	}
	return m.unpackPage(&m.one, dst, m.pack[:d.size], d)
}

func (m *kdumpMemory) unpackPage(u *unpacker, dst, src []byte, d desc) error {
	if err := u.unpack(dst, src, d.flags); err != nil {
		return m.damaged(d.off, "packed page: %v", err)
	}
	return nil
}
