package workqueue

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Three ways to look for an item. Next has the first; the BPF side once had the
// last, because a compiler makes an or of an add of 0, and the x86 JIT a loop of that.
var pollings = [3]struct {
	name string
	read func(w *atomic.Uint32)
}{
	{"load", func(w *atomic.Uint32) { w.Load() }},
	{"add", func(w *atomic.Uint32) { w.Add(0) }},
	{"or", func(w *atomic.Uint32) {
		for {
			if old := w.Load(); w.CompareAndSwap(old, old) {
				return
			}
		}
	}},
}

// poller is an idle worker that never finds anything.
type poller struct {
	turns atomic.Uint64
	_     [120]byte
}

func (p *poller) run(q *Queues, how *atomic.Uint32) {
	for n := how.Load(); n < uint32(len(pollings)); n = how.Load() {
		read := pollings[n].read
		read(&q.f.finish.populated)
		read(&q.f.lanes[0].head)
		read(&q.f.lanes[0].tail)
		p.turns.Add(1)
	}
}

// BenchmarkIdlePollers: what a push costs while all other CPUs find nothing, by how
// they look, in turn, in short rounds. A round in which a poller did not run all the
// time says nothing and is taken again, for two seconds at most: on a machine that
// has no CPU for the pollers all that time there is nothing to measure. The ratios
// are those of the medians.
func BenchmarkIdlePollers(b *testing.B) {
	n := runtime.GOMAXPROCS(0) - 1
	if n == 0 {
		b.Skip("one CPU: nobody polls while another pushes")
	}
	const pushes = 1000
	q := newTest(b, pushes, false)
	pollers := make([]poller, n)
	var how atomic.Uint32
	var all sync.WaitGroup
	for i := range pollers {
		all.Go(func() { pollers[i].run(q, &how) })
	}
	var took [len(pollings)][]float64
	round := func(i int) bool {
		q.Reset()
		before := turnsOf(pollers)
		start := time.Now()
		refill(b, q, pushes)
		ns := float64(time.Since(start)) / pushes
		ran := everywhere(before, turnsOf(pollers), pushes/50)
		if ran {
			took[i] = append(took[i], ns)
		}
		return ran
	}
	for b.Loop() {
		for i := range pollings {
			how.Store(uint32(i))
			for end := time.Now().Add(2 * time.Second); !round(i) && time.Now().Before(end); {
				runtime.Gosched()
			}
		}
	}
	how.Store(uint32(len(pollings)))
	all.Wait()
	for i, p := range pollings {
		if len(took[i]) == 0 {
			b.Skipf("%s: no round in which all pollers ran: no CPU was left for them", p.name)
		}
		b.ReportMetric(median(took[i]), "ns/push-"+p.name)
		if i > 0 {
			b.ReportMetric(median(took[i])/median(took[0]), p.name+"/load")
		}
	}
	b.ReportMetric(float64(n), "pollers")
}

func turnsOf(list []poller) (out []uint64) {
	for i := range list {
		out = append(out, list[i].turns.Load())
	}
	return out
}

func everywhere(before, after []uint64, least uint64) bool {
	for i := range before {
		if after[i]-before[i] < least {
			return false
		}
	}
	return true
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
