package kcdata

import (
	"io"
	"math"
	"testing"
)

func BenchmarkWriterThread(b *testing.B) {
	w := NewWriter(make([]byte, 4096))
	thread, words := &LinuxThread{Tid: 7}, make([]uint64, 12)
	snap := &ThreadSnapshot{ThreadID: 7}
	payload := packed(thread)
	b.Run("struct", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.n = 0
			threadItems(b, w, words, func() error { return w.Struct(TypeLinuxThread, thread) }, snap)
		}
		b.SetBytes(int64(w.Len()))
	})
	b.Run("bytes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.n = 0
			threadItems(b, w, words, func() error { return w.Bytes(TypeLinuxThread, payload) }, snap)
		}
		b.SetBytes(int64(w.Len()))
	})
}

func threadItems(b *testing.B, w *Writer, words []uint64, linux func() error, snap *ThreadSnapshot) {
	for _, err := range [...]error{
		w.BeginContainer(TypeThread, 7),
		w.Struct(TypeThreadSnapshot, snap),
		linux(),
		w.Uint64s(TypeKernStackLR64, words),
		w.EndContainer(7),
	} {
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReader(b *testing.B) {
	plain := big(b, 1000)
	b.ReportAllocs()
	b.SetBytes(int64(len(plain)))
	for b.Loop() {
		if _, err := Check(plain); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkItems(b *testing.B) {
	plain := big(b, 1000)
	b.ReportAllocs()
	b.SetBytes(int64(len(plain)))
	for b.Loop() {
		r, err := NewReader(plain)
		ok(b, err)
		for _, err := range r.Items() {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	plain := big(b, 1000)
	b.ReportAllocs()
	b.SetBytes(int64(len(plain)))
	for b.Loop() {
		if _, err := Decode(plain); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkText(b *testing.B) {
	plain := big(b, 1000)
	b.ReportAllocs()
	b.SetBytes(int64(len(plain)))
	for b.Loop() {
		ok(b, Text(io.Discard, plain, math.MaxInt64))
	}
}

func BenchmarkCompress(b *testing.B) {
	plain := big(b, 1000)
	for e := EnvelopeZlib; e <= EnvelopeZstd; e++ {
		b.Run(e.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(plain)))
			size := counter(0)
			for b.Loop() {
				size = 0
				ok(b, Compress(&size, plain, e))
			}
			b.ReportMetric(float64(size)/float64(len(plain)), "ratio")
		})
	}
}

// counter counts the bytes that are written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
