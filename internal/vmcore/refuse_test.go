package vmcore

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
)

// What is not read is refused in one line that says what it is, and how to convert it if that is possible.
func TestRefused(t *testing.T) {
	m := randomImage(rng(t, 1), 60, 4096)
	le := binary.LittleEndian
	elfWith := func(change func(*elfFile)) []byte {
		f := segmentsOf(rng(t, 1), m)
		change(f)
		return f.bytes()
	}
	kdumpWith := func(change func(*kdumpFile)) []byte {
		f := kdumpOf(m, byZlib)
		change(f)
		return f.bytes(t)
	}
	patched := func(b []byte, at int, v ...byte) []byte { copy(b[at:], v); return b }
	split := kdumpOf(m, 0).bytes(t)
	le.PutUint32(split[4096+12:], 1)
	for name, v := range map[string]struct {
		file []byte
		want string
	}{
		"empty":     {nil, "neither an ELF core nor"},
		"text":      {[]byte("hello"), "neither an ELF core nor"},
		"flattened": {append([]byte("makedumpfile\x00\x00\x00\x00"), make([]byte, 5000)...), "makedumpfile -R OUT < core"},
		"diskdump":  {append([]byte("DISKDUMP"), make([]byte, 5000)...), "diskdump"},
		"lzo":       {kdumpWith(func(f *kdumpFile) { f.status = byLZO }), "makedumpfile -c core OUT"},
		"split":     {split, "makedumpfile --reassemble"},
		"i686":      {kdumpWith(func(f *kdumpFile) { f.machine = "i686" }), `machine "i686"`},
		"no arch":   {kdumpWith(func(f *kdumpFile) { f.machine, f.notes = "Unknown", nil }), `machine "Unknown"`},
		"version 7": {patched(kdumpWith(func(*kdumpFile) {}), 8, 7), "version 7"},
		"s390":      {elfWith(func(f *elfFile) { f.machine = elf.EM_S390 }), "EM_S390"},
		"32 bits":   {patched(elfWith(func(*elfFile) {}), 4, 1), "64-bit"},
		"program":   {patched(elfWith(func(*elfFile) {}), 16, 2), "ET_EXEC"},
		"process": {elfWith(func(f *elfFile) {
			for i := range f.segments {
				f.segments[i].pa = 0
			}
		}), "the core of a process"},
		"no address": {elfWith(func(f *elfFile) {
			for i := range f.segments {
				f.segments[i].pa = ^uint64(0)
			}
		}), "no segment has a physical address"},
		"same bytes": {elfWith(func(f *elfFile) {
			for i := range f.segments {
				f.segments[i] = segment{pa: uint64(i) << 30, memory: 1 << 16, inFile: 1 << 16, off: 4096}
			}
		}), "more than the file"},
	} {
		_, err := open(bytes.NewReader(v.file), uint64(len(v.file)), "core")
		if err == nil || !strings.Contains(err.Error(), v.want) || !strings.HasPrefix(err.Error(), "core: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is wrong and keeps no memory from being read is said.
func TestFlaws(t *testing.T) {
	r := rng(t, 1)
	m := randomImage(r, 300, 4096)
	short := segmentsOf(r, m)
	short.flags = outOfSpace
	unplaced := segmentsOf(r, m)
	unplaced.segments = append(unplaced.segments, segment{pa: ^uint64(0), memory: 4096, inFile: 4096})
	unplaced.contents = append(unplaced.contents, make([]byte, 4096))
	odd := kdumpOf(m, bySnappy)
	odd.notes = notesOf(1, prstatusAMD64, strings.Replace(vmcoreinfo, "4096", "8192", 1))
	cut := kdumpOf(m, byZstd)
	cut.notes = cut.notes[:200]
	for name, v := range map[string]struct {
		file []byte
		want string
	}{
		"out of space": {short.bytes(), "ran out of space"},
		"no address":   {unplaced.bytes(), "1 segments of"},
		"page size":    {odd.bytes(t), `no page of amd64 has "8192" bytes`},
		"notes":        {cut.bytes(t), "note of 5 and 336 bytes"},
	} {
		c := openBytes(t, v.file)
		if len(c.Flaws()) != 1 || !strings.Contains(c.Flaws()[0].Error(), v.want) {
			t.Errorf("%s: %v", name, c.Flaws())
		}
		same(t, r, m, c)
	}
}

// A makedumpfile without space leaves its last descriptors empty: these pages are left out.
func TestKdumpOutOfSpace(t *testing.T) {
	m := randomImage(rng(t, 1), 400, 4096)
	f := kdumpOf(m, byZlib|kdumpShort)
	f.unpaid = 17
	c := openBytes(t, f.bytes(t))
	if len(c.Flaws()) != 1 || !strings.Contains(c.Flaws()[0].Error(), "ran out of space") {
		t.Error(c.Flaws())
	}
	for i, n := len(m.kinds)-1, 0; n < f.unpaid; i-- {
		if m.kinds[i] == held {
			m.kinds[i], m.data[i], n = left, nil, n+1
		}
	}
	same(t, rng(t, 2), m, c)
}

// badDisk cannot read some of its sectors.
type badDisk struct {
	io.ReaderAt
	from, to int64
}

var errSector = errors.New("bad sector")

func (d badDisk) ReadAt(p []byte, off int64) (int, error) {
	if off < d.to && off+int64(len(p)) > d.from {
		return 0, errSector
	}
	return d.ReaderAt.ReadAt(p, off)
}

// A disk that cannot read one sector costs the pages that lie in it, and no others.
func TestBadSector(t *testing.T) {
	m := &image{page: 4096}
	r := rng(t, 1)
	for range 300 {
		b := make([]byte, m.page)
		noise(r, b)
		m.add(held, b)
	}
	f := &elfFile{machine: elf.EM_X86_64}
	f.add(0, len(m.data)*m.page, bytes.Join(m.data, nil))
	for _, file := range [][]byte{f.bytes(), kdumpOf(m, byZlib).bytes(t)} {
		at := int64(len(file) / 2)
		c, err := open(badDisk{bytes.NewReader(file), at, at + 10}, uint64(len(file)), "core")
		if err != nil {
			t.Fatal(err)
		}
		tally, err := c.Pages(func(pa uint64, run []byte) error {
			if want := bytes.Join(m.data[pa/4096:int(pa)/4096+len(run)/4096], nil); !bytes.Equal(run, want) {
				t.Errorf("%d bytes at %#x differ", len(run), pa)
			}
			return nil
		})
		if err != nil || tally.Damaged < 1 || tally.Damaged > 2 || tally.Pages+tally.Damaged != 300 || tally.Absent != 0 ||
			!errors.Is(tally.First, ErrDamaged) || !errors.Is(tally.First, errSector) {
			t.Errorf("%+v, %v", tally, err)
		}
	}
}
