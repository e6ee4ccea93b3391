package bpf

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// fakeKernel is memory by physical address, seen at base.
type fakeKernel struct {
	base, table, next uint64
	mem               map[uint64]uint64
	f                 *finder
	asked             int
}

func (k *fakeKernel) pgd() uint64 { return k.base + k.table }

func (k *fakeKernel) words(addrs []uint64) ([]word, error) {
	var out []word
	for _, a := range addrs {
		k.asked++
		pa := a - k.base
		if !k.f.inRAM(pa) {
			out = append(out, word{why: 1})
			continue
		}
		out = append(out, word{value: k.mem[pa]})
	}
	return out, nil
}

// world is a machine that never was.
type world struct {
	l         layout
	top       top
	base, enc uint64
	ram       []RAMRange
	hugeShift uint32 // pages of this size; 0: small ones
}

// build makes tables and pages for two addresses.
func (w world) build() (*finder, *fakeKernel) {
	last := w.ram[len(w.ram)-1]
	k := &fakeKernel{base: w.base, table: last.Start + 0x10_0000, next: last.Start + 0x20_0000, mem: map[uint64]uint64{}}
	frames := map[uint64]uint64{}
	f := &finder{ram: w.ram, layout: w.l, kernel: k, frames: func(a uint64) (uint64, error) { return frames[a], nil }}
	k.f = f
	for i, va := range []uint64{0x7fab_c123_4008 & (1<<w.top.vaBits - 1), 0x1234_5678} {
		va &^= 7
		pa := w.leaf(k, va, last.End-0x4000_0000+uint64(i)<<28)
		frames[va] = pa >> w.l.pageShift
		p := ownPage{va, 0xabcdef00 + uint64(i)}
		k.mem[pa] = p.value
		f.own = append(f.own, p)
	}
	return f, k
}

// leaf enters va's page at pa and gives the byte's own address.
func (w world) leaf(k *fakeKernel, va, pa uint64) uint64 {
	table, bits := k.table, w.l.tableBits()
	for shift := w.top.shift; ; shift -= bits {
		at := table + va>>shift*8
		if shift != w.top.shift {
			at = table + va>>shift&(1<<bits-1)*8
		}
		if shift == w.l.pageShift || shift == w.hugeShift {
			mark := uint64(0x83)
			if w.l.leaf(0, 99) { // arm64: a block's bit 1 is clear, a page's set
				mark = map[bool]uint64{true: 3, false: 1}[shift == w.l.pageShift]
			}
			pa &^= 1<<shift - 1
			k.mem[at] = pa | w.enc | mark
			return pa | va&(1<<shift-1)
		}
		if k.mem[at] == 0 {
			k.mem[at] = k.next | w.enc | 3
			k.next += 1 << w.l.pageShift
		}
		table = w.l.address(k.mem[at]) &^ w.enc
	}
}

var (
	small = []RAMRange{{0x1000, 0x9f000}, {0x10_0000, 3 << 30}, {4 << 30, 26 << 30}}
	far   = []RAMRange{{0x10_0000, 2 << 30}, {6 << 40, 6<<40 + 64<<30}}
)

// Every layout that a kernel of ours may have is found out, wherever its map
// begins, with and without an encryption bit, by small pages and by large ones.
func TestFindsEveryLayout(t *testing.T) {
	amd, arm4, arm16, arm64 := layoutAMD64(), layoutARM64(12), layoutARM64(14), layoutARM64(16)
	for name, w := range map[string]world{
		"4 levels":            {l: amd, top: amd.tops[0], base: 0xffff_8880_0000_0000, ram: small},
		"4 levels, KASLR":     {l: amd, top: amd.tops[0], base: 0xffff_9a3f_c000_0000, ram: small},
		"5 levels":            {l: amd, top: amd.tops[1], base: 0xff11_0000_0000_0000, ram: small},
		"encrypted":           {l: amd, top: amd.tops[0], base: 0xffff_8880_0000_0000, enc: 1 << 47, ram: small},
		"encrypted, 5 levels": {l: amd, top: amd.tops[1], base: 0xff11_0000_0000_0000, enc: 1 << 51, ram: far},
		"2 MiB pages":         {l: amd, top: amd.tops[0], base: 0xffff_8880_0000_0000, enc: 1 << 47, ram: small, hugeShift: 21},
		"1 GiB pages":         {l: amd, top: amd.tops[0], base: 0xffff_8880_0000_0000, ram: far, hugeShift: 30},
		"arm64, 4 K":          {l: arm4, top: arm4.tops[0], base: 0xffff_0000_0000_0000, ram: small},
		"arm64, 4 K, 39 bits": {l: arm4, top: arm4.tops[1], base: 0xffff_ff80_0000_0000, ram: small},
		"arm64, 4 K, blocks":  {l: arm4, top: arm4.tops[0], base: 0xfff0_0000_4000_0000, ram: far, hugeShift: 21},
		"arm64, 16 K":         {l: arm16, top: arm16.tops[1], base: 0xffff_0000_0000_0000, ram: small},
		"arm64, 64 K":         {l: arm64, top: arm64.tops[0], base: 0xffff_0000_2000_0000, ram: small},
		"arm64, 64 K, 42":     {l: arm64, top: arm64.tops[1], base: 0xffff_fc00_0000_0000, ram: small},
	} {
		t.Run(name, func(t *testing.T) {
			f, k := w.build()
			m, err := f.find()
			if err != nil {
				t.Fatal(err)
			}
			if m.Base != w.base || m.TopShift != w.top.shift || m.Encryption != w.enc {
				t.Errorf("found %#x by %d bits, encryption %#x; want %#x, %d, %#x", m.Base, m.TopShift, m.Encryption, w.base, w.top.shift, w.enc)
			}
			t.Logf("%d words were read", k.asked)
		})
	}
}

// Where a page of ours is not what the walk yields, there is no map.
func TestFindsNoMapThatDoesNotFit(t *testing.T) {
	amd := layoutAMD64()
	w := world{l: amd, top: amd.tops[0], base: 0xffff_8880_0000_0000, ram: small}
	refused := errors.New("refused")
	for name, spoil := range map[string]func(*finder, *fakeKernel){
		"another word":      func(f *finder, _ *fakeKernel) { f.own[1].value++ },
		"another frame":     func(f *finder, _ *fakeKernel) { f.frames = func(uint64) (uint64, error) { return 77, nil } },
		"a hidden frame":    func(f *finder, _ *fakeKernel) { f.frames = func(uint64) (uint64, error) { return 0, refused } },
		"an absent table":   func(_ *finder, k *fakeKernel) { k.mem[k.table+f0(k)*8] = 0 },
		"no such ranges":    func(f *finder, _ *fakeKernel) { f.ram = []RAMRange{{0x1000, 0x9f000}} },
		"two bits too many": func(_ *finder, k *fakeKernel) { k.mem[k.table+f0(k)*8] |= 3 << 47 },
	} {
		f, k := w.build()
		spoil(f, k)
		m, err := f.find()
		var typed *DirectMapError
		if m != nil || !errors.As(err, &typed) && !errors.Is(err, refused) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// f0 is the index of the first page's entry in the first table.
func f0(k *fakeKernel) uint64 { return k.f.own[0].addr >> 39 }

func TestParseRAM(t *testing.T) {
	many := ""
	for i := range 200 {
		many += strings.ReplaceAll("@000-@fff : System RAM\n", "@", string("0123456789abcdef"[i/16])+string("0123456789abcdef"[i%16])+"1")
	}
	for _, c := range []struct {
		text string
		n    int
		err  error
	}{
		{"00001000-0009fbff : System RAM\n000a0000-000fffff : Reserved\n00100000-bfffffff : System RAM\n  01000000-02208d87 : System RAM\n", 2, nil},
		{"00000000-00000000 : System RAM\n", 0, errHidden},
		{"00000000-00000fff : Reserved\n", 0, errNoRAM},
		{"2000-2fff : System RAM\n1000-1fff : System RAM\n", 0, errDisorder},
		{many, MaxRAM, nil},
	} {
		list, err := parseRAM(strings.NewReader(c.text))
		list = largest(list)
		if len(list) != c.n || !errors.Is(err, c.err) {
			t.Errorf("%.40q: %d ranges, %v; want %d, %v", c.text, len(list), err, c.n, c.err)
		}
		for i := range list {
			if list[i].End <= list[i].Start || i > 0 && list[i].Start < list[i-1].End {
				t.Errorf("%.40q: range %d of %x", c.text, i, list)
			}
		}
	}
	if _, err := parseRAM(strings.NewReader("x-y : System RAM\n")); err == nil {
		t.Error("a line without addresses was taken")
	}
}

// Frame numbers that the kernel hides are no frame 0.
func TestPagemapWithoutRights(t *testing.T) {
	for file, want := range map[string]error{
		"\x00\x00\x00\x00\x00\x00\x00\x80": errNoFrame, "\x05\x00\x00\x00\x00\x00\x00\x00": errNotIn,
	} {
		name := t.TempDir() + "/pagemap"
		if err := writeFile(name, file); err != nil {
			t.Fatal(err)
		}
		_, err := pagemap(name)(8)
		var typed *DirectMapError
		if !errors.Is(err, want) || !errors.As(err, &typed) {
			t.Errorf("%q: %v, want %v", file, err, want)
		}
	}
}

func writeFile(name, text string) error { return os.WriteFile(name, []byte(text), 0o600) }
