package unwind

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"stackshot/internal/cursor"
	"stackshot/internal/gopclntab"
	"stackshot/internal/testheap"
	"stackshot/kcdata"
)

func seeds(t testing.TB) [][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.elf")
	if err != nil || len(paths) < 4 {
		t.Fatalf("testdata has %d files: %v", len(paths), err)
	}
	var out [][]byte
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, data)
	}
	return out
}

// FuzzTable: a damaged file gives errors, and as many rows as there are.
func FuzzTable(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data, uint64(0))
		other := bytes.Clone(data)
		other[18] = 0xb7 // arm64
		f.Add(other, uint64(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, start uint64) {
		testheap.Bound(t, maxFuzzHeap, fmt.Sprintf("a file of %d bytes", len(data)), func() { exercise(t, data, start) })
	})
}

// maxFuzzHeap bounds what a small file can make us hold, and garbage as much again.
const maxFuzzHeap = 64 << 20

// exercise asks a file for rows all over its segments.
func exercise(t *testing.T, data []byte, start uint64) {
	table, err := NewTable(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		if table != nil {
			t.Fatalf("a table with the error %v", err)
		}
		return
	}
	for _, seg := range table.segments {
		for i := range uint64(64) {
			addr := seg.Vaddr + start%max(seg.Memsz, 1) + i*7
			table.rowAt(addr, nil)
			table.pathAt(addr)
			table.frameAt(addr, addr+i)
			table.restores(addr)
		}
		if addr, ok := table.AddrOf(seg.Off); ok && !table.segments.Executable(addr) {
			t.Fatalf("offset %#x is code at %#x, which is none", seg.Off, addr)
		}
	}
}

// FuzzPclntab: the same for Go's table alone.
func FuzzPclntab(f *testing.F) {
	data := smallPclntab()
	f.Add(data, uint32(0))
	f.Add(data, uint32(0x45))
	f.Fuzz(func(t *testing.T, data []byte, pc uint32) {
		p, err := pclntabOf(data)
		if err != nil {
			return
		}
		for i := range uint64(32) {
			if r, err := p.rowAt(p.Text + uint64(pc) + i); r != nil && err == nil && r.golang.delta%8 != 0 {
				t.Fatalf("a frame of %d bytes", r.golang.delta)
			}
		}
	})
}

// pclntabOf is the table that data begins with.
func pclntabOf(data []byte) (*pclntab, error) {
	h, err := gopclntab.ParseHeader(data, uint64(len(data)))
	return &pclntab{&gopclntab.Table{Header: h, Name: ".gopclntab"}, data}, err
}

// smallPclntab is the table of two functions: "main.f" at 0, whose frame opens
// by 24 bytes at 5 and closes at 0x3f, and "runtime.goexit" at 0x40, outermost.
func smallPclntab() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xfffffff1) // go1.20
	b = append(b, 0, 0, 1, 8)
	const names, values, records = 72, 104, 128
	for _, v := range []uint64{2, 0, 0x401000, names, 0, 0, values, records} {
		b = le.AppendUint64(b, v)
	}
	b = append(b, "main.f\x00runtime.goexit\x00"...)
	b = append(b, make([]byte, values-len(b))...)
	b = append(b, 0, 2, 5, 48, 0x3a, 47, 1, 0, 2, 16, 0) // two tables of {change of value, of pc}
	b = append(b, make([]byte, records-len(b))...)
	for _, v := range []uint32{0, 24, 0x40, 68, 0x50} {
		b = le.AppendUint32(b, v)
	}
	b = append(b, make([]byte, 4)...)
	for _, fn := range []struct{ entry, name, pcsp, flags uint32 }{{0, 0, 1, 0}, {0x40, 7, 8, flagTopFrame << 8}} {
		for _, v := range []uint32{fn.entry, fn.name, 0, 0, fn.pcsp, 0, 0, 0, 0, 1, fn.flags} {
			b = le.AppendUint32(b, v)
		}
	}
	return b
}

func TestPclntab(t *testing.T) {
	p, err := pclntabOf(smallPclntab())
	if err != nil || p.Text != 0x401000 {
		t.Fatal(p, err)
	}
	text := p.Text
	for pc, want := range map[uint64]goRow{0: {}, 4: {}, 5: {delta: 24}, 0x3e: {delta: 24}, 0x3f: {}, 0x40: {top: true}, 0x4f: {top: true}} {
		if r, err := p.rowAt(text + pc); err != nil || *r.golang != want {
			t.Errorf("pc %#x: %+v, %v; want %+v", pc, r, err, want)
		}
	}
	if r, err := p.rowAt(text + 0x50); r != nil || err != nil {
		t.Errorf("behind the last function: %+v, %v", r, err)
	}
}

// FuzzUnwind: any registers and any stack give a stack that is well formed, and
// of fewer bytes a prefix of it.
func FuzzUnwind(f *testing.F) {
	var tables []*Table
	for _, data := range seeds(f) {
		for _, machine := range []byte{data[18], 0xb7} {
			data := bytes.Clone(data)
			data[18] = machine
			table, err := NewTable(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				f.Fatal(err)
			}
			tables = append(tables, table)
		}
	}
	for i := range tables {
		f.Add(uint8(i), uint16(20), uint8(3), bytes.Repeat([]byte{0x10, 1, 0x40, 0, 0, 0, 0, 0}, 40))
	}
	f.Fuzz(func(t *testing.T, which uint8, pc uint16, links uint8, stack []byte) {
		table := tables[int(which)%len(tables)]
		seg := table.segments[0]
		m := &kcdata.Mapping{LinuxMapping: kcdata.LinuxMapping{Start: seg.Vaddr, End: seg.Vaddr + seg.Memsz, Offset: seg.Off}, Path: "x"}
		p := &Process{Arch: table.arch.name, Find: func(addr uint64) (*kcdata.Mapping, *Table) {
			if addr-m.Start < m.End-m.Start {
				return m, table
			}
			return nil, nil
		}}
		in := fuzzInput(table.arch, m.Start+uint64(pc)%(m.End-m.Start), links, stack)
		full := p.Unwind(in)
		if n := len(full.PCs); n == 0 || n > in.Max || len(full.How) != n {
			t.Fatalf("%d frames of at most %d, %d times how", n, in.Max, len(full.How))
		}
		in.Stack[0].Data = stack[:len(stack)/2]
		cut := p.Unwind(in)
		if len(cut.PCs) > len(full.PCs) || !slices.Equal(cut.PCs, full.PCs[:len(cut.PCs)]) {
			t.Fatalf("%#x is no prefix of %#x", cut.PCs, full.PCs)
		}
	})
}

// fuzzInput makes a thread whose stack is at an address that the stack's own
// words can name.
func fuzzInput(a *arch, pc uint64, links uint8, stack []byte) Input {
	const base = 0x10000
	in := Input{Max: 40, Registers: make([]uint64, len(a.order)), Stack: []kcdata.UserBytes{{Addr: base, Data: stack}}}
	c := cursor.Cursor{Data: stack}
	for i, reg := range a.order {
		switch int(reg) {
		case a.sp:
			in.Registers[i] = base
		case a.pc:
			in.Registers[i] = pc
		case a.fp:
			in.Registers[i] = base + uint64(c.U8())*8
		default:
			in.Registers[i] = base + c.U64()%4096
		}
	}
	// The chain by the rule of the window, so that it agrees with the bytes.
	mem := memory{pieces: in.Stack}
	for fp := in.Registers[slices.Index(a.order, int8(a.fp))]; len(in.Chain) < int(links); {
		next, ok := mem.copied(fp)
		ret, found := mem.copied(fp + 8)
		if !ok || !found {
			break
		}
		in.Chain = append(in.Chain, kcdata.LinuxUserLink{FP: fp, PC: ret})
		if next <= fp {
			in.ChainComplete = next == 0
			break
		}
		fp = next
	}
	return in
}
