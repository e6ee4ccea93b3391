package vmcore

import (
	"encoding/binary"
	"strings"
)

const (
	// maxNotes bounds how many notes are looked at; a CPU has two at most.
	maxNotes = 1 << 16
	// maxInfo bounds the text of vmcoreinfo, in bytes; the kernel takes a page for it.
	maxInfo = 1 << 20

	noteHeader = 12
	ntPrstatus = 1

	// Sizes of struct elf_prstatus, in bytes.
	prstatusAMD64 = 336
	prstatusARM64 = 392
)

// notes is what is taken of a dump's notes.
type notes struct {
	cpus int
	arch string // by the size of the registers; empty if there are none
	info map[string]string
	seen int
}

// read looks at the notes in size bytes at off.
func (n *notes) read(s *source, off, size uint64) error {
	if !s.holds(off, size) {
		return s.damaged(off, "notes of %d bytes: the file ends at %#x", size, s.size)
	}
	end := off + size
	for end-off >= noteHeader {
		var h [noteHeader + len("VMCOREINFO\x00")]byte
		head := h[:min(uint64(len(h)), end-off)]
		if err := s.read(head, off, "note"); err != nil {
			return err
		}
		le := binary.LittleEndian
		name, desc, kind := uint64(le.Uint32(head)), uint64(le.Uint32(head[4:])), le.Uint32(head[8:])
		if name == 0 && desc == 0 && kind == 0 {
			return nil // what follows the last note is zero
		}
		at := off + noteHeader + align4(name)
		next := at + align4(desc)
		if at+desc > end {
			return s.damaged(off, "note of %d and %d bytes, where its segment ends at %#x", name, desc, end)
		}
		if n.seen++; n.seen > maxNotes {
			return s.damaged(off, "more than %d notes", maxNotes)
		}
		// A name that is longer than the longest one that matters is none of them.
		text := strings.TrimRight(string(head[noteHeader:min(uint64(len(head)), noteHeader+name)]), "\x00")
		switch {
		case text == "CORE" && kind == ntPrstatus:
			n.prstatus(desc)
		case text == "VMCOREINFO" && align4(name) == 12 && n.info == nil:
			if err := n.readInfo(s, at, desc); err != nil {
				return err
			}
		}
		off = min(next, end)
	}
	return nil
}

// align4 rounds up to the alignment of notes: the kernel and QEMU write 4 in 64-bit cores too.
func align4(v uint64) uint64 { return (v + 3) &^ 3 }

func (n *notes) prstatus(desc uint64) {
	n.cpus++
	switch desc {
	case prstatusAMD64:
		n.arch = "amd64"
	case prstatusARM64:
		n.arch = "arm64"
	}
}

// readInfo reads the text of vmcoreinfo: lines of KEY=VALUE.
func (n *notes) readInfo(s *source, off, size uint64) error {
	if size > maxInfo {
		return s.damaged(off, "vmcoreinfo of %d bytes, at most %d", size, maxInfo)
	}
	b := make([]byte, size)
	if err := s.read(b, off, "vmcoreinfo"); err != nil {
		return err
	}
	n.info = map[string]string{}
	text, _, _ := strings.Cut(string(b), "\x00")
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "="); ok {
			n.info[key] = value
		}
	}
	return nil
}
