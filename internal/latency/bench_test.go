package latency

import (
	"io"
	"math/rand/v2"
	"testing"

	"stackshot/kcdata"
)

// BenchmarkMeasure takes and writes the figures of 4,000 threads.
func BenchmarkMeasure(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 9))
	s := randomThreads(r)
	for s.ThreadCount() < 4000 {
		s.Tasks = append(s.Tasks, randomThreads(r).Tasks...)
	}
	s.Symbols = kcdata.NewSymbolTable(nil, "")
	b.ReportAllocs()
	for b.Loop() {
		if err := Text(io.Discard, []*Figures{Measure("f", s, 10, nil)}, TextOptions{Top: 10}); err != nil {
			b.Fatal(err)
		}
	}
}
