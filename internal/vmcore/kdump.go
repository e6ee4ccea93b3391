package vmcore

import (
	"encoding/binary"
	"fmt"
	"strings"
)

const (
	// Of struct disk_dump_header and struct kdump_sub_header on 64-bit machines, in bytes.
	kdumpHeader    = 464
	kdumpSubHeader = 104

	newestKdump  = 6
	biggestBlock = 65536

	// In status of the header and in flags of each page.
	byZlib     = 0x01
	byLZO      = 0x02
	bySnappy   = 0x04
	kdumpShort = 0x08 // status: the writer ran out of space
	byZstd     = 0x20
)

// kdumpHead is what the headers of a kdump-compressed file say.
type kdumpHead struct {
	version   uint32
	machine   string
	status    uint32
	block     uint64 // bytes of a page, and the unit of the file's layout
	subBlocks uint64 // blocks of the sub header
	mapBlocks uint64 // blocks of both bitmaps
	frames    uint64 // page frames of the machine: the bits of a bitmap

	split          bool
	info, infoSize uint64 // vmcoreinfo, where in the file
	note, noteSize uint64 // notes, likewise
}

func openKdump(s *source) (*Core, error) {
	h, err := readKdumpHead(s)
	if err != nil {
		return nil, err
	}
	switch {
	case h.status&byLZO != 0:
		return nil, fmt.Errorf("%s: compressed by lzo, which is not read; makedumpfile -c %s OUT compresses it by zlib", s.path, s.path)
	case h.split:
		return nil, fmt.Errorf("%s: one part of a split dump; makedumpfile --reassemble %s OTHER... OUT joins its parts", s.path, s.path)
	}
	c := &Core{about: about{format: "kdump"}}
	var n notes
	if h.note != 0 {
		if err := n.read(s, h.note, h.noteSize); err != nil {
			c.flaw(err)
		}
	}
	if n.info == nil && h.info != 0 {
		if err := n.readInfo(s, h.info, h.infoSize); err != nil {
			c.flaw(err)
		}
	}
	if c.arch, err = h.arch(s, &n); err != nil {
		return nil, err
	}
	if h.status&kdumpShort != 0 {
		c.flaw(fmt.Errorf("%s: incomplete: makedumpfile ran out of space", s.path))
	}
	c.takeNotes(s, &n, h.block)
	c.memory, err = newKdumpMemory(s, h)
	return c, err
}

// arch is the machine's architecture. QEMU writes "Unknown" for arm64; the size of the registers then tells it.
func (h *kdumpHead) arch(s *source, n *notes) (string, error) {
	switch strings.ToLower(h.machine) {
	case "x86_64":
		return "amd64", nil
	case "aarch64":
		return "arm64", nil
	case "unknown", "":
		if n.arch != "" {
			return n.arch, nil
		}
	}
	return "", fmt.Errorf("%s: offset %#x: a dump of machine %q; x86_64 and aarch64 are read", s.path, 12+4*65, h.machine)
}

func readKdumpHead(s *source) (*kdumpHead, error) {
	var b [kdumpHeader]byte
	if err := s.read(b[:], 0, "kdump header"); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	machine, _, _ := strings.Cut(string(b[12+4*65:12+5*65]), "\x00")
	h := &kdumpHead{version: le.Uint32(b[8:]), machine: machine, status: le.Uint32(b[424:]),
		block: uint64(le.Uint32(b[428:])), subBlocks: uint64(le.Uint32(b[432:])),
		mapBlocks: uint64(le.Uint32(b[436:])), frames: uint64(le.Uint32(b[440:]))}
	if h.version > newestKdump {
		return nil, fmt.Errorf("%s: offset 8: version %d of the kdump-compressed format; 0 to %d are read", s.path, h.version, newestKdump)
	}
	if h.block < smallestPage || h.block > biggestBlock || h.block&(h.block-1) != 0 {
		return nil, s.damaged(428, "blocks of %d bytes", h.block)
	}
	if err := h.readSub(s); err != nil {
		return nil, err
	}
	return h, h.check(s)
}

// readSub reads the sub header, of which each version has more.
func (h *kdumpHead) readSub(s *source) error {
	var b [kdumpSubHeader]byte
	if err := s.read(b[:], h.block, "kdump sub header"); err != nil {
		return err
	}
	le := binary.LittleEndian
	if h.version >= 2 {
		h.split = le.Uint32(b[12:]) != 0
	}
	if h.version >= 3 {
		h.info, h.infoSize = le.Uint64(b[32:]), le.Uint64(b[40:])
	}
	if h.version >= 4 {
		h.note, h.noteSize = le.Uint64(b[48:]), le.Uint64(b[56:])
	}
	if h.version >= 6 {
		h.frames = le.Uint64(b[96:])
	}
	return nil
}

// Where the parts of the file begin. Blocks are counted in 32 bits, so nothing overflows.
func (h *kdumpHead) ramMap() uint64    { return (1 + h.subBlocks) * h.block }
func (h *kdumpHead) heldMap() uint64   { return h.ramMap() + h.mapBlocks*h.block/2 }
func (h *kdumpHead) descStart() uint64 { return h.ramMap() + h.mapBlocks*h.block }

// check holds the bitmaps against the file.
func (h *kdumpHead) check(s *source) error {
	size := h.mapBlocks * h.block
	switch {
	case h.subBlocks == 0:
		return s.damaged(432, "a sub header of 0 blocks")
	case h.mapBlocks%2 != 0:
		return s.damaged(436, "%d blocks for two bitmaps", h.mapBlocks)
	case h.frames > maxPhys/h.block:
		return s.damaged(440, "%d page frames of %d bytes", h.frames, h.block)
	case (h.frames+7)/8 > size/2:
		return s.damaged(436, "bitmaps of %d bytes for %d page frames", size/2, h.frames)
	case !s.holds(h.ramMap(), size):
		return s.damaged(h.ramMap(), "bitmaps of %d bytes: the file ends at %#x", size, s.size)
	}
	return nil
}
