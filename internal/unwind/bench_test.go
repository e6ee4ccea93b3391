//go:build linux && (amd64 || arm64)

package unwind

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// BenchmarkUnwind: a stack of 300 frames and more without frame pointers, its
// rows known already (warm) or not (cold).
func BenchmarkUnwind(b *testing.B) {
	path := buildRecursion(b, "gcc", "-O2 -fomit-frame-pointer", "-O2 -fomit-frame-pointer", "-O2 -fomit-frame-pointer")
	pid, tid := start(b, 'S', path, "300", "block")
	k := take(b, pid, tid, 1<<20, 1000)
	p, in := k.process(), with(k.in, 1000)
	r := p.Unwind(in)
	if r.Flags&kcdata.UserComplete == 0 {
		b.Fatal(r.Err)
	}
	run := func(name string, before func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				before()
				p.Unwind(in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(r.PCs)), "ns/frame")
		})
	}
	run("warm", func() {})
	run("cold", func() {
		for _, t := range k.all {
			if t != nil {
				clear(t.rows.known)
			}
		}
	})
}

// BenchmarkRow: one program counter whose row is not known yet.
func BenchmarkRow(b *testing.B) {
	data := bigFile(b)
	table, err := NewTable(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		b.Fatal(err)
	}
	seg := table.segments[1]
	found := 0
	for i := uint64(0); b.Loop(); i++ {
		if r, _ := table.findRow(seg.Vaddr+i*4099%seg.Filesz, nil); r != nil {
			found++
		}
	}
	b.ReportMetric(float64(found)/float64(b.N), "found/op")
}

// BenchmarkTable: opening a large program, by its search table and by reading
// every entry.
func BenchmarkTable(b *testing.B) {
	data := bigFile(b)
	b.Run("search table", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := NewTable(bytes.NewReader(data), int64(len(data))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("index", func(b *testing.B) {
		table, err := NewTable(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		entries := 0
		for b.Loop() {
			s := *table.sections[0]
			if err := s.index(); err != nil {
				b.Fatal(err)
			}
			entries = len(s.all)
		}
		b.ReportMetric(float64(entries), "FDEs")
	})
}

func bigFile(b *testing.B) []byte {
	b.Helper()
	testneed.Program(b, "gdb") // the large program
	path, err := exec.LookPath("gdb")
	if err != nil {
		b.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return data
}
