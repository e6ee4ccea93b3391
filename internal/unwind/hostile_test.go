package unwind

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testelf"
)

// Small files that would make much of themselves.

func problems(t *testing.T, file []byte) []error {
	t.Helper()
	table, err := NewTable(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return []error{err}
	}
	return table.Problems()
}

func named(errs []error, part string) bool {
	return slices.ContainsFunc(errs, func(err error) bool { return strings.Contains(err.Error(), part) })
}

// Each section would get a copy of the name.
func TestSectionsShareOneLongName(t *testing.T) {
	name := strings.Repeat("n", 1<<20)
	file := testelf.File(slices.Repeat([]testelf.Section{{Name: name, Type: elf.SHT_PROGBITS}}, 1000)...)
	if got := problems(t, file); !named(got, "has a name of more than") {
		t.Error(got)
	}
}

func TestHeadersOfOddSizes(t *testing.T) {
	for at, what := range map[int]string{54: "program headers of 65535 bytes", 58: "section headers of 65535 bytes"} {
		file := testelf.File()
		binary.LittleEndian.PutUint16(file[at:], 0xffff)
		if got := problems(t, file); !named(got, what) {
			t.Errorf("%v, want %q", got, what)
		}
	}
}

func TestPackedNamesOfSections(t *testing.T) {
	file := testelf.File()
	names := file[binary.LittleEndian.Uint64(file[40:])+sectionSize:]
	binary.LittleEndian.PutUint64(names[8:], uint64(elf.SHF_COMPRESSED))
	if got := problems(t, file); !named(got, "section names") {
		t.Error(got)
	}
}

func TestPackedCallFrames(t *testing.T) {
	const size = 64 << 20
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write(make([]byte, size))
	w.Close()
	file := testelf.File(testelf.Section{
		Name: ".debug_frame", Type: elf.SHT_PROGBITS, Flags: elf.SHF_COMPRESSED,
		Data: testelf.Packed(elf.COMPRESS_ZLIB, size, b.Bytes()),
	})
	if got := problems(t, file); !named(got, "at most") {
		t.Error(got)
	}
}

// counted counts the bytes that are read.
type counted struct {
	io.ReaderAt
	n int64
}

func (c *counted) ReadAt(b []byte, off int64) (int, error) {
	c.n += int64(len(b))
	return c.ReaderAt.ReadAt(b, off)
}

// The start of Go's code is looked for in all data: here a thousand times in the
// same.
func TestSectionsShareOneContent(t *testing.T) {
	table := smallPclntab()
	binary.LittleEndian.PutUint64(table[24:], 0) // no start of the code
	sections := []testelf.Section{
		{Name: ".gopclntab", Type: elf.SHT_PROGBITS, Data: table},
		{Name: ".data", Type: elf.SHT_PROGBITS, Flags: elf.SHF_WRITE, Data: make([]byte, 1<<20)},
	}
	for range 1000 {
		sections = append(sections, testelf.Section{Name: ".more", Type: elf.SHT_PROGBITS, Flags: elf.SHF_WRITE, Like: ".data"})
	}
	file := testelf.File(sections...)
	r := &counted{ReaderAt: bytes.NewReader(file)}
	if _, err := NewTable(r, int64(len(file))); err != nil || r.n > maxSearch+8<<20 {
		t.Errorf("%d MiB read of a file of %d, %v", r.n>>20, len(file)>>20, err)
	}
}

// Each state that is remembered is a copy of all rules.
func TestManyRememberedStates(t *testing.T) {
	var program []byte
	for reg := range byte(maxRegs) {
		program = append(program, 0x08, reg) // same_value
	}
	program = append(program, bytes.Repeat([]byte{0x0a, 0x0b}, 30000)...) // remember_state, restore_state
	f := &fde{cie: &cie{}, instructions: program}
	if _, err := (&frameSection{}).rulesAt(f, 0); err == nil {
		t.Error("no error")
	}
}

// An expression is evaluated for each thread.
func TestLongExpression(t *testing.T) {
	program := append([]byte{0x0f, 0x80, 0x20}, make([]byte, 0x1000)...) // def_cfa_expression
	f := &fde{cie: &cie{}, instructions: program}
	if _, err := (&frameSection{}).rulesAt(f, 0); err == nil {
		t.Error("no error")
	}
}

// Every FDE reads its CIE's letters again.
func TestLongAugmentation(t *testing.T) {
	h := &handmade{}
	h.function(codeStart, codeStart+0x100, "zR"+strings.Repeat("B", 100))
	if err := h.section.index(); err == nil || len(h.section.all) > 0 {
		t.Errorf("%d functions, %v", len(h.section.all), err)
	}
}

// A program with long rules for each function, and all of them on its stacks, is
// given up; what is known already stays.
func TestWorkHasAnEnd(t *testing.T) {
	h := &handmade{}
	h.function(codeStart, codeEnd, "zR", make([]byte, 60000)...)
	if err := h.section.index(); err != nil {
		t.Fatal(err)
	}
	table := &Table{arch: &arm64, sections: []*frameSection{&h.section}}
	w := new(Work)
	n := uint64(0)
	for ; n < 4096; n++ {
		if _, err := table.rowAt(codeStart+n, w); errors.Is(err, errWork) {
			break
		}
	}
	if n == 0 || n == 4096 {
		t.Errorf("given up after %d rows", n)
	}
	if r, err := table.rowAt(codeStart, w); r == nil || err != nil {
		t.Errorf("a row that was there: %v", err)
	}
	if r, err := table.rowAt(codeStart+n, new(Work)); r == nil || err != nil {
		t.Errorf("another capture: %v", err)
	}
}

// Go's table of a function's stack sizes is read as far as real ones go.
func TestEndlessStackSizes(t *testing.T) {
	data := append(smallPclntab(), bytes.Repeat([]byte{2, 1}, 1<<20)...)
	p, err := newPclntab(&amd64, "x", data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.delta(uint64(len(data))-p.Values-2<<20, 1<<20-8); err == nil {
		t.Error("read to its end")
	}
}
