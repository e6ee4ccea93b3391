package ends

import "testing"

// What the threads of a large capture wait for is found in their records while they go on.
func BenchmarkWanted(b *testing.B) {
	const tasks, threads = 200, 100
	var all [][]sleeper
	for i := range uint32(tasks) {
		var one []sleeper
		for j := range uint32(threads) {
			f := aPipe
			f.Object += uint64(i*threads+j) << 12
			one = append(one, asleep(1+i*threads+j, f))
		}
		all = append(all, one)
	}
	c := raw(b, 1, all...)
	b.ReportAllocs()
	for b.Loop() {
		if w := Wanted(c); len(w.Ends) != tasks*threads {
			b.Fatal(len(w.Ends))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(tasks*threads), "ns/thread")
}
