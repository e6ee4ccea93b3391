package symbol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"stackshot/internal/elffile"
)

// lineTable5 makes a line table of version 5 with no instructions.
func lineTable5(dirs, files []byte) []byte {
	head := []byte{1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}
	head = append(append(head, dirs...), files...)
	body := append([]byte{5, 0, 8, 0}, binary.LittleEndian.AppendUint32(nil, uint32(len(head)))...)
	body = append(body, head...)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// What a header claims is not believed before there are bytes for it, and a long
// name that many entries share is not copied for each.
func TestLineTableClaims(t *testing.T) {
	none := []byte{0, 0}
	pathText := []byte{1, contentPath, 0x08}
	entries := func(count uint64, b string) []byte {
		return append(binary.AppendUvarint(bytes.Clone(pathText), count), b...)
	}
	for name, c := range map[string]struct {
		table []byte
		err   error
	}{
		"one directory, one file": {lineTable5(entries(1, "/d\x00"), entries(1, "f\x00")), nil},
		"too many directories":    {lineTable5(entries(1<<62, "/d\x00"), none), elffile.ErrDamaged},
		"too many files":          {lineTable5(none, entries(1<<34, "f\x00")), elffile.ErrDamaged},
		"entries of no field":     {lineTable5([]byte{0, 0xff, 0xff, 3}, none), elffile.ErrDamaged},
		"a form of no known size": {lineTable5(append([]byte{1, contentPath, 0x19, 1}, "/d\x00"...), none), elffile.ErrDamaged},
		"an open name":            {lineTable5(none, entries(1, "f")), elffile.ErrDamaged},
		"cut short":               {lineTable5(none, none)[:20], elffile.ErrDamaged},
		"version 6":               {append([]byte{4, 0, 0, 0, 6, 0}, 0, 0), elffile.ErrDamaged},
	} {
		head, code, err := readLineHead(&lineTexts{line: c.table}, 0, "/c")
		if !errors.Is(err, c.err) || err == nil && (head.names.path(0) != "/d/f" || len(code) != 0) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := readLineHead(&lineTexts{}, 1, ""); !errors.Is(err, elffile.ErrDamaged) {
		t.Error("beyond the section:", err)
	}
	long := strings.Repeat("x", 1<<20) + "\x00"
	refs := append([]byte{1, contentPath, 0x1f}, binary.AppendUvarint(nil, 1<<16)...)
	head, _, err := readLineHead(&lineTexts{line: lineTable5(none, append(refs, make([]byte, 4<<16)...)), lineStr: []byte(long)}, 0, long)
	if err != nil || len(head.names.files) != 1<<16 {
		t.Fatal(err)
	}
	allocs := testing.AllocsPerRun(10, func() { head.names.path(9) })
	if n := len(head.names.path(9)); n > 2*maxFileName || allocs > 8 {
		t.Errorf("a name of %d bytes, %v allocations", n, allocs)
	}
}

// Names are absolute where the unit says where it was compiled.
func TestFileNamePaths(t *testing.T) {
	names := fileNames{comp: "/src", dirs: [][]byte{[]byte("."), []byte("inc"), []byte("/usr")}, files: []fileName{
		{0, []byte("a.c")}, {1, []byte("b.h")}, {2, []byte("c.h")}, {1, []byte("/d.h")}, {9, []byte("e.h")}, {},
	}}
	for n, want := range []string{"a.c", "/src/inc/b.h", "/usr/c.h", "/d.h", "/src/e.h", "", ""} {
		if got := names.path(uint64(n)); got != want {
			t.Errorf("file %d is %q, want %q", n, got, want)
		}
	}
}
