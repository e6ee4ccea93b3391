package gopclntab

import (
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"
)

// own is the table of this test's program, and the address of its text.
func own(t testing.TB) (table []byte, text uint64) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range sections {
		if s := f.Section(name); s != nil {
			if table, err = s.Data(); err != nil {
				t.Fatal(err)
			}
			return table, f.Section(".text").Addr
		}
	}
	t.Fatal("no pclntab")
	return nil, 0
}

func words(b []byte) func(uint64) uint32 {
	return func(off uint64) uint32 {
		if off+4 < off || off+4 > uint64(len(b)) {
			return 0
		}
		return binary.LittleEndian.Uint32(b[off:])
	}
}

// Against debug/gosym: function and line of program counters all over the text.
func TestLikeGosym(t *testing.T) {
	b, text := own(t)
	want, err := gosym.NewTable(nil, gosym.NewLineTable(b, text))
	if err != nil {
		t.Fatal(err)
	}
	h, err := ParseHeader(b, uint64(len(b)))
	if err != nil || h.NFunc != uint64(len(want.Funcs)) {
		t.Fatalf("%+v, %v; gosym has %d functions", h, err, len(want.Funcs))
	}
	word := words(b)
	for i := range want.Funcs {
		f := &want.Funcs[i]
		if f.End <= f.Entry {
			continue // of no length: a linker's mark, in programs linked with C
		}
		pc := f.Entry + rand.Uint64N(f.End-f.Entry)
		start, at, ok := h.Find(word, pc-text)
		if !ok || start+text != f.Entry {
			t.Fatalf("%#x of %s: start %#x, %v", pc, f.Name, start, ok)
		}
		name := b[h.Names+uint64(word(at+FuncName)):][:len(f.Name)]
		line, ok := h.Value(b[h.Values+uint64(word(at+FuncLine)):], pc-text-start)
		if !ok {
			line = -1 // as gosym has it, of the padding behind a function
		}
		if _, l, _ := want.PCToLine(pc); string(name) != f.Name || int(line) != l {
			t.Errorf("%#x: %s line %d, gosym %s line %d", pc, name, line, f.Name, l)
		}
	}
	last := want.Funcs[len(want.Funcs)-1].End
	if _, _, ok := h.Find(word, last-text); ok {
		t.Error("a function past the last")
	}
}

// Whatever the header says, what it points at is in the table.
func FuzzTable(f *testing.F) {
	b, _ := own(f)
	f.Add(b[:4096], uint64(0x1000))
	f.Add(b[:HeaderSize], uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, pc uint64) {
		h, err := ParseHeader(b, uint64(len(b)))
		if err != nil {
			return
		}
		in := func(off uint64) uint32 { return binary.LittleEndian.Uint32(b[off:]) } // panics outside
		h.Entry(in, h.NFunc)
		h.Find(in, pc)
		h.Value(b[h.Values:], pc)
	})
}

func TestRefusesHeaders(t *testing.T) {
	b, _ := own(t)
	for _, c := range []struct {
		what string
		off  int
		to   []byte
	}{
		{"magic", 0, []byte{0xfb}}, {"quantum", 6, []byte{2}}, {"word size", 7, []byte{4}},
		{"functions", 8, []byte{0, 0, 0, 0, 1}}, {"names", 32, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}}, {"list of functions", 64, []byte{0, 0, 0, 0, 1}},
	} {
		bad := append([]byte(nil), b[:HeaderSize]...)
		copy(bad[c.off:], c.to)
		if h, err := ParseHeader(bad, uint64(len(b))); err == nil || h != (Header{}) {
			t.Errorf("%s: %+v", c.what, h)
		}
	}
	for n := range HeaderSize {
		if _, err := ParseHeader(b[:n], uint64(n)); err == nil {
			t.Errorf("%d bytes", n)
		}
	}
}
