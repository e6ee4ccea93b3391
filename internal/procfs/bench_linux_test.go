package procfs

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"
)

// The cost of a thread, five files: alone and in batches, plain and timed.
func BenchmarkThread(b *testing.B) {
	pool := NewReaders(0, 10*time.Second)
	defer pool.Close()
	pid := os.Getpid()
	for _, c := range []struct {
		name string
		fs   FS
		n    int
	}{{"direct", FS{}, 1}, {"timed", FS{Readers: pool}, 1}, {"direct16", FS{}, 16}, {"timed16", FS{Readers: pool}, 16}} {
		b.Run(c.name, func(b *testing.B) {
			r := NewThreadReader(c.fs, ReadStat|ReadStatus|ReadStack|ReadSchedstat|ReadSyscall)
			tids := slices.Repeat([]int{pid}, c.n)
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range r.Threads(pid, tids) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			size := 0
			for i := range r.files {
				size += len(r.files[i].Data)
			}
			b.SetBytes(int64(size))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.n), "ns/thread")
		})
	}
}

func BenchmarkParse(b *testing.B) {
	stack := bytes.Repeat([]byte("[<0>] entry_SYSCALL_64_after_hwframe+0x76/0x7e\n"), 10)
	var status ProcStatus
	var frames ThreadStack
	for _, c := range []struct {
		name string
		text []byte
		run  func([]byte) error
	}{
		{"stat", []byte(stat618), func(p []byte) error { _, err := ParseStat(p); return err }},
		{"status", []byte(status618), func(p []byte) error { return status.Parse(p) }},
		{"stack", stack, func(p []byte) error { return frames.Parse(p) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				if err := c.run(c.text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
