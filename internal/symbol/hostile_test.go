package symbol

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"stackshot/internal/elffile"
	"stackshot/internal/gopclntab"
	"stackshot/internal/testelf"
	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// Small files that would make much of themselves.

func openBytes(t *testing.T, b []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// functions are n symbols of functions: number i is at testelf.Base + 16·i, its
// name at offset i·step of the string table.
func functions(n, step int) []byte {
	le := binary.LittleEndian
	b := make([]byte, symSize)
	for i := range n {
		b = le.AppendUint32(b, uint32(1+i*step))
		b = append(b, byte(elf.STT_FUNC), 0, 1, 0)
		b = le.AppendUint64(b, testelf.Base+16*uint64(i))
		b = le.AppendUint64(b, 16)
	}
	return b
}

// symtab is a file with these symbols: more sections of them lie in the same place.
func symtab(syms []byte, names string, more int) []byte {
	sections := []testelf.Section{
		{Name: ".strtab", Type: elf.SHT_STRTAB, Data: []byte("\x00" + names)},
		{Name: ".symtab", Type: elf.SHT_SYMTAB, Link: 1, Data: syms},
	}
	for range more {
		sections = append(sections, testelf.Section{Name: ".more", Type: elf.SHT_SYMTAB, Link: 1, Like: ".symtab"})
	}
	return testelf.File(sections...)
}

// A table takes the memory of its functions once, and none if that is too much. What did not fit is said.
func TestTableWithinRoom(t *testing.T) {
	const n = 300_000
	b := symtab(functions(n, 0), "f\x00", 0)
	in := elffile.NewReader(bytes.NewReader(b), int64(len(b)))
	for room, want := range map[uint64]int{n * symBytes: n, n*symBytes - 1: 0, math.MaxUint64: n} {
		in.Room = room
		testheap.Bound(t, int64(want*symBytes+4<<20), fmt.Sprintf("%d functions with %d bytes", n, room), func() {
			f, err := open(in)
			if err != nil || len(f.syms.syms) != want {
				t.Fatalf("%d of %d functions, %v", len(f.syms.syms), want, err)
			}
			said := slices.ContainsFunc(f.problems, func(err error) bool {
				return errors.Is(err, elffile.ErrTooBig) && strings.Contains(err.Error(), fmt.Sprintf(".symtab at offset 0x%x: %d functions", f.layout.Section(".symtab").Off, n))
			})
			if said != (want == 0) {
				t.Errorf("with %d bytes: %v", room, f.problems)
			}
		})
	}
}

// Marks within one large function are dropped, and so is their memory.
func TestDroppedMarksTakeNoMemory(t *testing.T) {
	const n = 100_000
	b := functions(n+1, 0)[symSize:] // without the first, which is no symbol
	for i := range n {
		clear(b[(i+1)*symSize+16 : (i+2)*symSize]) // its size
	}
	binary.LittleEndian.PutUint64(b[16:], 1<<30)
	f := openBytes(t, symtab(b, "f\x00", 0))
	if len(f.syms.syms) != 1 || cap(f.syms.syms) > 100 {
		t.Errorf("%d symbols in the memory of %d", len(f.syms.syms), cap(f.syms.syms))
	}
}

func TestSymbolTablesShareOneContent(t *testing.T) {
	const n = 1000
	f := openBytes(t, symtab(functions(n, 2), strings.Repeat("f\x00", n), 250))
	if got := len(f.syms.syms); got != n {
		t.Errorf("%d symbols of %d", got, n)
	}
}

// A million addresses in one function have one name.
func TestAddressesShareOneName(t *testing.T) {
	f := openBytes(t, symtab(functions(2, 0), strings.Repeat("n", maxName)+"\x00", 0))
	hits := f.hits([]uint64{0, 1, 16}, newTexts(maxTexts, nil), true)
	name := hits[0].fn.Name
	for _, h := range hits {
		if len(h.fn.Name) != maxName || unsafe.StringData(h.fn.Name) != unsafe.StringData(name) || h.fn.Raw != "" {
			t.Errorf("%.20q has bytes of its own", h.fn.Name)
		}
	}
}

// Names may lie within each other, so that few bytes hold many long ones.
func TestManyLongNames(t *testing.T) {
	const n = 1000
	var names strings.Builder
	for i := range n + maxName {
		fmt.Fprintf(&names, "n%d", i)
	}
	f := openBytes(t, symtab(functions(n, 1), names.String(), 0))
	offs := make([]uint64, n)
	for i := range offs {
		offs[i] = uint64(16 * i)
	}
	kept := newTexts(10*maxRawName, nil)
	sum := 0
	for _, h := range f.hits(offs, kept, true) {
		sum += len(h.fn.Name)
		if h.ok != (h.fn.Name != "") {
			t.Fatalf("a name of %d bytes, known is %v", len(h.fn.Name), h.ok)
		}
	}
	if sum == 0 || sum > 10*maxRawName || !errors.Is(kept.err(), elffile.ErrTooBig) {
		t.Errorf("%d bytes, %v", sum, kept.err())
	}
}

func TestNamesCostTheirLength(t *testing.T) {
	one := []kcdata.UserFunction{{Name: strings.Repeat("n", 1<<20)}}
	k := known{names: names{1: one, 2: one}}
	if got := k.Cost(); got < 1<<20 || got > 2<<20 {
		t.Errorf("a name of a MiB costs %d", got)
	}
}

func TestDebugSectionsShareOneContent(t *testing.T) {
	sections := []testelf.Section{{Name: ".debug_info", Type: elf.SHT_PROGBITS, Data: make([]byte, 1<<20)}}
	for range 800 {
		sections = append(sections, testelf.Section{Name: ".debug_info", Type: elf.SHT_PROGBITS, Like: ".debug_info"})
	}
	got, err := openBytes(t, testelf.File(sections...)).debugSections()
	if err != nil || len(got) != 1 {
		t.Errorf("%d sections, %v", len(got), err)
	}
}

func TestMiniDebugBomb(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	const size = 64 << 20
	raw := filepath.Join(t.TempDir(), "zeros")
	if err := os.WriteFile(raw, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	xz := command(t, "xz", "-9", "--stdout", raw)
	f := openBytes(t, testelf.File(testelf.Section{Name: ".gnu_debugdata", Type: elf.SHT_PROGBITS, Data: xz}))
	if errs := f.Problems(); !slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, elffile.ErrTooBig) }) {
		t.Errorf("xz: %d bytes, %v", len(xz), errs)
	}
}

// Go's table of lines of a large function is long, of the others it is short.
func TestLongTableOfValues(t *testing.T) {
	const n = 50000
	table := []byte{2, 1} // value 0 for one byte
	for range n {
		table = append(table, 2, 1) // one more
	}
	table = append(table, 0)
	p := &gopclntab.Table{Header: gopclntab.Header{Quantum: 1}, At: elffile.Span{Size: uint64(len(table))}}
	f := &File{&contents{goTable: p}, elffile.NewReader(bytes.NewReader(table), int64(len(table)))}
	for pc, want := range map[uint64]int32{0: 0, 1: 1, 3000: 3000, n: n} {
		if got, ok := f.goValue(0, pc); !ok || got != want {
			t.Errorf("at %d: %d, %v", pc, got, ok)
		}
	}
	if _, ok := f.goValue(0, n+1); ok {
		t.Error("a value behind the end")
	}
}

// Each of many units has its abbreviations begin one further in the same table.
func TestAbbreviationsWithinEachOther(t *testing.T) {
	const n = 1000
	var info, abbrev []byte
	for i := range uint32(n) {
		abbrev = append(abbrev, 1, byte(dwarf.TagVariable), 0, 0, 0)
		info = binary.LittleEndian.AppendUint32(info, 8)
		info = append(info, 4, 0) // version
		info = binary.LittleEndian.AppendUint32(info, 5*i)
		info = append(info, 8, 0) // size of an address, an entry
	}
	abbrev = append(abbrev, 0)
	f := openBytes(t, testelf.File(
		testelf.Section{Name: ".debug_info", Type: elf.SHT_PROGBITS, Data: info},
		testelf.Section{Name: ".debug_abbrev", Type: elf.SHT_PROGBITS, Data: abbrev},
	))
	sections, err := f.debugSections()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newLineTable(t.Context(), sections); !errors.Is(err, elffile.ErrTooBig) {
		t.Errorf("%d units share %d bytes: %v", n, len(abbrev), err)
	}
}

// A length of one byte for each unit makes many of few bytes.
func TestManyUnits(t *testing.T) {
	if _, err := readUnits(bytes.Repeat([]byte{1, 0, 0, 0, 0}, 100), nil); !errors.Is(err, elffile.ErrDamaged) {
		t.Error(err)
	}
	unit := []byte{7, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8}
	if _, err := readUnits(bytes.Repeat(unit, maxUnits+1), nil); !errors.Is(err, elffile.ErrTooBig) {
		t.Error(err)
	}
}
