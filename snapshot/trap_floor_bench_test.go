package snapshot

import (
	"context"
	"fmt"
	"testing"

	"stackshot/internal/testtask"
)

// floorRounds is how often every session is measured, in turn.
const floorRounds = 20

// BenchmarkFloor holds engine trap against its floor: the same stop and the
// same walk, of whose threads each is unwound and nothing recorded. One round
// measures every session once; rounds follow one another, so a ratio is the
// median of ratios within a round, and a machine whose speed drifts moves both
// sides. Engines pull and procfs stand beside it on all CPUs.
//
//	floor1, trap1 …  one CPU at work, ns of stopped time per thread
//	floor, trap …    all CPUs at work; procfs stops nothing: its whole time
func BenchmarkFloor(b *testing.B) {
	crowd := func(n int) []testtask.Kind {
		return []testtask.Kind{testtask.Bystanders(n / 12), testtask.ManyThreads(n / 4),
			testtask.ManyThreads(n / 4), testtask.ManyThreads(n / 4), testtask.ManyThreads(n / 6)}
	}
	for _, w := range []struct {
		name  string
		kinds []testtask.Kind
	}{
		{"threads=600", crowd(600)},
		{"threads=4000", crowd(4000)},
		{"process=4000", []testtask.Kind{testtask.ManyThreads(4000)}},
	} {
		b.Run(w.name, func(b *testing.B) {
			testtask.Start(b, w.kinds...)
			againstFloor(b)
		})
	}
}

// floorEntry is one session of the round and what it measured.
type floorEntry struct {
	name    string
	measure func() float64 // ns per thread
	per     []float64
}

func againstFloor(b *testing.B) {
	all := Options{Engine: EngineTrap}
	one := Options{Engine: EngineTrap, CPUs: firstWorker(b)}
	entries := []*floorEntry{
		procfsEntry(b), stoppedEntry(b, "pull", benchSession(b, Options{Engine: EnginePull})),
		stoppedEntry(b, "floor1", benchFloor(b, one)), stoppedEntry(b, "trap1", benchSession(b, one)),
		stoppedEntry(b, "floor", benchFloor(b, all)), stoppedEntry(b, "trap", benchSession(b, all)),
	}
	for _, e := range entries {
		e.measure() // memory grows to what it needs
	}
	for b.Loop() {
		for range floorRounds {
			for _, e := range entries {
				e.per = append(e.per, e.measure())
			}
		}
	}
	per := map[string][]float64{}
	for _, e := range entries {
		per[e.name] = e.per
		b.ReportMetric(median(e.per), e.name+"-ns/thread")
	}
	b.ReportMetric(0, "ns/op") // says nothing: a round is all sessions
	for _, r := range [][2]string{{"trap1", "floor1"}, {"trap", "floor"}, {"trap", "trap1"}, {"floor", "floor1"}, {"pull", "trap"}, {"procfs", "trap"}} {
		b.ReportMetric(median(ratios(per[r[0]], per[r[1]])), r[0]+"/"+r[1])
	}
}

// firstWorker is the main CPU, as the list that Options.CPUs takes.
func firstWorker(b *testing.B) string {
	return fmt.Sprint(benchSession(b, Options{Engine: EngineTrap}).plan.Main)
}

func stoppedEntry(b *testing.B, name string, s *Session) *floorEntry {
	return &floorEntry{name: name, measure: func() float64 { return stoppedPerThread(b, s) }}
}

func procfsEntry(b *testing.B) *floorEntry {
	s := benchSession(b, Options{Engine: EngineProcfs})
	return &floorEntry{name: "procfs", measure: func() float64 {
		r, err := s.Take(context.Background(), Request{}) // stops nothing: tasks may end meanwhile
		if err != nil {
			b.Fatal(err)
		}
		return float64(r.Elapsed) / float64(r.Threads)
	}}
}

// benchFloor is engine trap, but its program only unwinds.
func benchFloor(b *testing.B, o Options) *Session {
	b.Helper()
	s := benchSession(b, o)
	e := s.engine.(*trap)
	e.floor = true
	top := s.plan.Topology
	if err := e.load(size{bytes: firstTrapBytes, tasks: firstTrapItems, clusters: len(top.Clusters), amp: top.AMP}); err != nil {
		b.Fatal(err)
	}
	return s
}

// stoppedPerThread captures, writes no file, and gives ns of stopped time.
func stoppedPerThread(b *testing.B, s *Session) float64 {
	b.Helper()
	sc, err := s.scope(Request{})
	if err != nil {
		b.Fatal(err)
	}
	c, err := s.tries(context.Background(), sc)
	for again := 0; err == nil && len(c.failed) > 0 && again < 5; again++ { // a task ended between census and record
		c, err = s.tries(context.Background(), sc)
	}
	if err != nil || len(c.failed) > 0 {
		b.Fatalf("%v, left out %+v", err, c.failed)
	}
	threads := 0
	for _, r := range c.recorded {
		threads += int(r.threads)
	}
	return float64(c.capture.StoppedNs) / float64(threads)
}
