package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testelf"
	"stackshot/internal/testheap"
)

func read(b []byte) (*Layout, error) { return Read(NewReader(bytes.NewReader(b), int64(len(b)))) }

// Sections and segments are those that debug/elf finds in this program.
func TestLikeDebugELF(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	m, err := read(b)
	if err != nil || m.Entry != want.Entry || m.Machine != want.Machine || len(m.Sections) != len(want.Sections) {
		t.Fatalf("%+v, %v", m, err)
	}
	for i, s := range want.Sections {
		got := Section{Name: s.Name, Type: s.Type, Flags: s.Flags, Addr: s.Addr, Off: s.Offset, Size: s.FileSize, Link: s.Link, nameAt: m.Sections[i].nameAt}
		if s.Type != elf.SHT_NOBITS && m.Sections[i] != got {
			t.Errorf("%+v, want %+v", m.Sections[i], got)
		}
	}
	var loads Segments
	for _, p := range want.Progs {
		if p.Type == elf.PT_LOAD {
			loads = append(loads, p.ProgHeader)
		}
	}
	if !slices.Equal(m.Segments, loads) || !m.Segments.Executable(m.Entry) {
		t.Errorf("%+v, want %+v", m.Segments, loads)
	}
}

// No section gets a copy of a long name that all of them share.
func TestSectionsShareOneLongName(t *testing.T) {
	file := testelf.File(slices.Repeat([]testelf.Section{{Name: strings.Repeat("n", 1<<20), Type: elf.SHT_PROGBITS}}, 1000)...)
	testheap.Bound(t, 16<<20, "a name of a MiB", func() {
		if m, err := read(file); err != nil || len(m.Sections[1].Name) != maxSectionName {
			t.Error(m, err)
		}
	})
}

func TestHeadersOfOddSizes(t *testing.T) {
	for at, what := range map[int]string{54: "program headers", 58: "section headers"} {
		file := testelf.File()
		binary.LittleEndian.PutUint16(file[at:], 0xffff)
		if _, err := Read(NewReader(bytes.NewReader(file), 1<<40)); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A string ends where its table does, or at the limit.
func TestText(t *testing.T) {
	table := append([]byte("\x00short\x00"), bytes.Repeat([]byte("l"), 5000)...)
	r := NewReader(bytes.NewReader(table), int64(len(table)))
	for off := range uint64(len(table) + 2) {
		for _, limit := range []uint64{3, 128, 1000, 16 << 10} {
			got, want := r.Text(Span{0, r.Size}, off, limit), Text(table, off, limit)
			if got != want || uint64(len(got)) > limit {
				t.Fatalf("at %d of %d: %q, %q", off, limit, got, want)
			}
		}
	}
	if got := Text(table, 1, 10); got != "short" {
		t.Error(got)
	}
}

// In parts of any length a piece is what it is at once, and the same pieces are refused.
func TestInParts(t *testing.T) {
	file := []byte("0123456789")
	r := NewReader(bytes.NewReader(file), int64(len(file)))
	for off := range uint64(12) {
		for size := range uint64(12) {
			want, wantErr := r.Bytes(Span{off, size}, 9, "piece")
			for part := uint64(1); part < 12; part++ {
				var got []byte
				err := r.InParts(Span{off, size}, 9, part, "piece", func(b []byte) {
					if uint64(len(b)) > part || len(b) == 0 {
						t.Errorf("a part of %d bytes, not %d", len(b), part)
					}
					got = append(got, b...)
				})
				if !bytes.Equal(got, want) || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
					t.Fatalf("%d bytes at %d in parts of %d: %q, %v; want %q, %v", size, off, part, got, err, want, wantErr)
				}
			}
		}
	}
}

// What a piece may take of the memory bounds whatever limit it has of its own.
func TestRoom(t *testing.T) {
	r := NewReader(bytes.NewReader(make([]byte, 10)), 10)
	r.Room = 4
	if b, err := r.Bytes(Span{0, 4}, 9, "piece"); err != nil || len(b) != 4 {
		t.Error(b, err)
	}
	if _, err := r.Bytes(Span{0, 5}, 9, "piece"); !errors.Is(err, ErrTooBig) || !strings.Contains(err.Error(), "at most 4") {
		t.Error(err)
	}
}
