package vmcore

import (
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// elfFile is how an ELF core is to be written.
type elfFile struct {
	machine  elf.Machine
	flags    uint32
	notes    []byte
	segments []segment // off is set by bytes, unless it is not 0
	contents [][]byte
	xnum     bool // the number of headers stands in section 0, however few there are
}

// segmentsOf makes segments of an image: each run of held frames, and the frames left out behind it. It
// splits runs at random, at bytes too, and takes some twice.
func segmentsOf(r *rand.Rand, m *image) *elfFile {
	f := &elfFile{machine: elf.EM_X86_64}
	for i := 0; i < len(m.kinds); {
		if m.kinds[i] == hole {
			i++
			continue
		}
		start, stop := i, i+1+r.IntN(20)
		var b []byte
		for ; i < min(stop, len(m.kinds)) && m.kinds[i] == held; i++ {
			b = append(b, m.data[i]...)
		}
		mem := len(b)
		for ; i < min(stop, len(m.kinds)) && m.kinds[i] == left; i++ {
			mem += m.page
		}
		f.add(uint64(start*m.page), mem, b)
		if cut := r.IntN(mem); r.IntN(3) == 0 {
			last := len(f.segments) - 1
			f.contents[last] = b[:min(cut, len(b))]
			f.segments[last].memory, f.segments[last].inFile = uint64(cut), uint64(len(f.contents[last]))
			f.add(uint64(start*m.page+cut), mem-cut, b[min(cut, len(b)):])
		}
		if from := r.IntN(len(b) + 1); r.IntN(4) == 0 {
			size := r.IntN(len(b) - from + 1)
			f.add(uint64(start*m.page+from), size, b[from:from+size])
		}
	}
	return f
}

func (f *elfFile) add(pa uint64, memory int, b []byte) {
	f.segments = append(f.segments, segment{pa: pa, memory: uint64(memory), inFile: uint64(len(b))})
	f.contents = append(f.contents, b)
}

// shuffle puts the segments into any order.
func (f *elfFile) shuffle(r *rand.Rand) {
	r.Shuffle(len(f.segments), func(i, j int) {
		f.segments[i], f.segments[j] = f.segments[j], f.segments[i]
		f.contents[i], f.contents[j] = f.contents[j], f.contents[i]
	})
}

// bytes is the file.
func (f *elfFile) bytes() []byte {
	le := binary.LittleEndian
	n := len(f.segments) + 1
	h := slices.Concat([]byte("\x7fELF\x02\x01\x01"), make([]byte, 57))
	le.PutUint16(h[16:], uint16(elf.ET_CORE))
	le.PutUint16(h[18:], uint16(f.machine))
	le.PutUint64(h[32:], elfHeader)
	le.PutUint32(h[48:], f.flags)
	le.PutUint16(h[54:], programHeader)
	le.PutUint16(h[56:], uint16(n))
	table := uint64(n * programHeader)
	if f.xnum || n >= manyHeaders {
		le.PutUint16(h[56:], manyHeaders)
		le.PutUint64(h[40:], elfHeader+table)
	}
	data := elfHeader + table + sectionHeader
	out := appendPhdr(h, elf.PT_NOTE, segment{off: data, inFile: uint64(len(f.notes))})
	off := data + uint64(len(f.notes))
	for i, g := range f.segments {
		if g.off == 0 {
			g.off = off
		}
		out = appendPhdr(out, elf.PT_LOAD, g)
		off += uint64(len(f.contents[i]))
	}
	section := make([]byte, sectionHeader)
	le.PutUint32(section[44:], uint32(n))
	out = slices.Concat(out, section, f.notes)
	return slices.Concat(out, slices.Concat(f.contents...))
}

func appendPhdr(b []byte, t elf.ProgType, g segment) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(t))
	b = le.AppendUint32(b, uint32(elf.PF_R))
	for _, v := range []uint64{g.off, g.pa + 0xffff888000000000, g.pa, g.inFile, g.memory, 0} {
		b = le.AppendUint64(b, v)
	}
	return b
}

// note is one note, as the kernel and QEMU write it.
func note(name string, kind uint32, desc []byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(len(name)+1))
	b = le.AppendUint32(b, uint32(len(desc)))
	b = le.AppendUint32(b, kind)
	b = append(append(b, name...), 0)
	b = append(b, make([]byte, -len(b)&3)...)
	b = append(b, desc...)
	return append(b, make([]byte, -len(b)&3)...)
}

const vmcoreinfo = "OSRELEASE=6.12.1-test\nBUILD-ID=00ff\nPAGESIZE=4096\nSYMBOL(_stext)=ffffffff81000000\nKERNELOFFSET=3c000000\nCRASHTIME=1764296487\n"

// notesOf is what a machine of n CPUs leaves.
func notesOf(n, prstatus int, info string) []byte {
	var b []byte
	for range n {
		b = append(b, note("CORE", ntPrstatus, make([]byte, prstatus))...)
		b = append(b, note("QEMU", 0, make([]byte, 432))...)
	}
	if info != "" {
		b = append(b, note("VMCOREINFO", 0, []byte(info))...)
	}
	return b
}
