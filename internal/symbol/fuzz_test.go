package symbol

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stackshot/internal/gopclntab"
	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
)

// maxFuzzHeap bounds what a small file can make us hold, and garbage as much again:
// the dictionary of .gnu_debugdata, and a little.
const maxFuzzHeap = 256 << 20

// seeds are small ELF files: DWARF 4 and 5, zlib and zstd, a shared library,
// .gnu_debugdata, .gnu_debuglink, and one with Go's table.
func seeds(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{"pclntab": goSeed()}
	files, _ := filepath.Glob("testdata/elf/*.elf")
	if len(files) < 6 {
		t.Fatalf("only %q", files)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(file)] = b
	}
	return out
}

// goSeed is a file with nothing but a pclntab of two functions: main.a at
// 0x1000, main.b at 0x1010, the text ends at 0x1020.
func goSeed() []byte {
	le := binary.LittleEndian
	const table, text = 0x200, 0x1000
	pcln := make([]byte, gopclntab.HeaderSize)
	le.PutUint32(pcln, 0xfffffff1) // go1.20
	pcln[6], pcln[7] = 1, 8
	for i, v := range []uint64{2, 1, text, 72, 88, 92, 98, 104} {
		le.PutUint64(pcln[8+8*i:], v)
	}
	pcln = append(pcln, "main.a\x00main.b\x00\x00\x00"...) // 72
	pcln = append(pcln, 0, 0, 0, 0)                        // 88: the unit's files
	pcln = append(pcln, "a.go\x00\x00"...)                 // 92
	pcln = append(pcln, 10, 16, 0, 2, 16, 0)               // 98: line 4, file 0
	for _, v := range []uint32{0, 20, 16, 56, 32} {        // 104: entry and _func of each
		pcln = le.AppendUint32(pcln, v)
	}
	for _, entry := range []uint32{0, 16} {
		for _, v := range []uint32{entry, entry / 16 * 7, 0, 0, 0, 3, 0, 0, 0} {
			pcln = le.AppendUint32(pcln, v)
		}
	}
	names := []byte("\x00.gopclntab\x00.shstrtab\x00")
	b := make([]byte, table)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint64(b[40:], table+0x200) // e_shoff
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], 3)
	le.PutUint16(b[62:], 2)
	copy(b[0x100:], names)
	b = append(append(b, pcln...), make([]byte, 0x200-len(pcln)+3*64)...)
	sh := func(i int, name uint32, off, size uint64) {
		s := b[table+0x200+64*i:]
		le.PutUint32(s, name)
		le.PutUint32(s[4:], 1)
		le.PutUint64(s[24:], off)
		le.PutUint64(s[32:], size)
	}
	sh(1, 1, table, uint64(len(pcln)))
	sh(2, 12, 0x100, uint64(len(names)))
	return b
}

func TestGoSeed(t *testing.T) {
	b := goSeed()
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil || len(f.Problems()) > 0 {
		t.Fatal(err, f.Problems())
	}
	for at, want := range map[uint64]Function{
		0x1000: {"main.a", "main.a", 0x1000}, 0x100f: {"main.a", "main.a", 0x1000},
		0x1010: {"main.b", "main.b", 0x1010}, 0x101f: {"main.b", "main.b", 0x1010}, 0x1020: {}, 0xfff: {},
	} {
		if got, _ := f.Function(at); got != want {
			t.Errorf("%#x is %+v, want %+v", at, got, want)
		}
	}
	if file, line := f.SourceLine(0x1011); file != "a.go" || line != 4 {
		t.Errorf("line %s:%d", file, line)
	}
}

// exercise does with a file all that can be done. Errors are right; panics,
// endless loops and boundless memory are not.
func exercise(t *testing.T, b []byte, at uint64) {
	t.Helper()
	testheap.Bound(t, maxFuzzHeap, fmt.Sprintf("a file of %d bytes", len(b)), func() { readAll(t, b, at) })
}

// forever is what no small file takes on any machine, however loaded: it is
// milliseconds.
const forever = 5 * time.Minute

func readAll(t *testing.T, b []byte, at uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), forever)
	defer cancel()
	if f, err := Open(bytes.NewReader(b), int64(len(b))); err == nil {
		addrs := []uint64{at, f.layout.Entry, 0, ^uint64(0)}
		for _, y := range f.syms.syms[:min(len(f.syms.syms), 16)] {
			addrs = append(addrs, y.addr, y.addr+uint64(y.size)/2)
		}
		var lines *lineTable
		if sections, err := f.debugSections(); err == nil {
			lines, _ = newLineTable(ctx, sections)
		}
		for _, a := range addrs {
			f.Vaddr(a)
			f.SourceLine(a)
			if fn, ok := f.Function(a); ok && (fn.Start > a || fn.Name == "" || len(fn.Name) > maxRawName) {
				t.Errorf("%#x is %+v", a, fn)
			}
			if lines != nil && len(lines.ranges) > 0 {
				lines.Places(ctx, a)
			}
		}
	}
	if ctx.Err() != nil {
		t.Errorf("%d bytes took %v", len(b), forever)
	}
}

// FuzzFile reads damaged ELF files.
func FuzzFile(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b, uint64(0x401000))
	}
	f.Fuzz(exercise)
}

// Seeds with a few bytes damaged, and cut short.
func TestDamagedFiles(t *testing.T) {
	testneed.Slow(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	for name, b := range seeds(t) {
		for range 400 {
			bad := bytes.Clone(b)
			for range 1 + rnd.IntN(8) {
				bad[rnd.IntN(len(bad))] = []byte{0, 1, 0x7f, 0x80, 0xff, byte(rnd.Uint32())}[rnd.IntN(6)]
			}
			exercise(t, bad, rnd.Uint64N(0x500000))
			exercise(t, b[:rnd.IntN(len(b))], 0x401000)
		}
		if t.Failed() {
			t.Fatalf("of seed %s", name)
		}
	}
}

// FuzzDemangle: whatever a name says, what becomes of it has a bound, and so does
// what it takes to make it.
func FuzzDemangle(f *testing.F) {
	for _, s := range []string{
		"1fIJiiiEEvDpT_", "NSt6vectorIiSaIiEE9push_backEOi", "Z1fI1AIiiEEvT_ENKUlT_E_clIiEEDaS0_",
		"NvNtCs1234_7mycrate3foo3bar", "INvCs1_1a1bINtB2_1cB2_EE", "N1AcvT_IiEEv", "1fILi3EEvT_DTadfp_Li1EE",
		"1fIJidEEvDpNSt5tupleIJDpT_EE4typeE", "N4core3ptr79drop_in_place17h0123456789abcdefE",
		"1fIFRS_RS0_EEvv", "NKR1A1fIJ1BIJT_DpT0_EEEEEDcDpOT_",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		testheap.Bound(t, 64<<20, fmt.Sprintf("a name of %d bytes", len(s)), func() {
			for _, raw := range []string{s, "_Z" + s, "_R" + s} {
				if got := Demangle(raw); len(got) > maxName+len("...") || raw != "" && got == "" {
					t.Errorf("%q became %d bytes", raw, len(got))
				}
			}
		})
	})
}
