package unwind

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"errors"
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
	p, err := pclntabOf(data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.delta(uint64(len(data))-p.Values-2<<20, 1<<20-8); err == nil {
		t.Error("read to its end")
	}
}
