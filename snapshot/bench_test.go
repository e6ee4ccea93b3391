package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"stackshot/internal/testtask"
)

// benchSession is a session kept open over a benchmark.
func benchSession(b *testing.B, o Options) *Session {
	b.Helper()
	requireBPF(b)
	o.LockWait, o.ArrivalBudget = time.Minute, time.Second // measure late CPUs, do not cut them off
	s, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func benchTake(b *testing.B, s *Session) (*Result, time.Duration) {
	b.Helper()
	var file bytes.Buffer
	began := time.Now()
	r, err := s.Take(context.Background(), Request{Output: &file})
	if err != nil {
		b.Fatal(err)
	}
	if !r.Whole() {
		b.Fatalf("not whole: %+v", r)
	}
	return r, time.Since(began)
}

// BenchmarkCapture takes, in turn, with pull on all CPUs, pull with one CPU
// working, and procfs, so that the ratios hold on a machine whose speed
// drifts. Metrics: medians of ns the machine stood still per thread, of the
// whole call, and the ratios.
func BenchmarkCapture(b *testing.B) {
	for _, threads := range []int{600, 4000} {
		b.Run(fmt.Sprint("threads=", threads), func(b *testing.B) {
			testtask.Start(b, testtask.Bystanders(threads/12), testtask.ManyThreads(threads/4),
				testtask.ManyThreads(threads/4), testtask.ManyThreads(threads/4), testtask.ManyThreads(threads/6))
			compareEngines(b)
		})
	}
}

func compareEngines(b *testing.B) {
	all := benchSession(b, Options{Engine: EnginePull})
	one := benchSession(b, Options{Engine: EnginePull, CPUs: fmt.Sprint(all.plan.Main)})
	proc := benchSession(b, Options{Engine: EngineProcfs})
	var stoppedAll, stoppedOne, total, procfs, perThread []float64
	var last *Result
	for b.Loop() {
		r, d := benchTake(b, all)
		n := float64(r.Threads)
		stoppedAll = append(stoppedAll, float64(r.Stopped))
		total = append(total, float64(d))
		perThread = append(perThread, float64(r.Stopped)/n)
		last = r
		r, _ = benchTake(b, one)
		stoppedOne = append(stoppedOne, float64(r.Stopped))
		r, _ = benchTake(b, proc)
		procfs = append(procfs, float64(r.Elapsed))
	}
	b.ReportMetric(float64(last.Threads), "threads")
	b.ReportMetric(median(perThread), "stopped-ns/thread")
	b.ReportMetric(median(total), "call-ns")
	b.ReportMetric(float64(last.Bytes)/float64(last.Threads), "B/thread")
	b.ReportMetric(median(procfs)/float64(last.Threads), "procfs-ns/thread")
	b.ReportMetric(median(ratios(stoppedAll, procfs)), "pull/procfs")
	b.ReportMetric(median(ratios(stoppedAll, stoppedOne)), "allcpus/onecpu")
}

func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

func median(v []float64) float64 { return quantile(v, 0.5) }

func quantile(v []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

// BenchmarkArrival measures first to last arrival, on the machine as it is and
// with three hogs on every CPU.
func BenchmarkArrival(b *testing.B) {
	for _, hogs := range []int{0, 3} {
		b.Run(fmt.Sprint("hogs=", hogs), func(b *testing.B) {
			s := benchSession(b, Options{Engine: EnginePull})
			for _, cpu := range s.plan.Stop {
				if hogs > 0 {
					testtask.CPUHogs(b, cpu, hogs)
				}
			}
			var arrivals []float64
			for b.Loop() {
				for range 20 {
					r, _ := benchTake(b, s)
					arrivals = append(arrivals, float64(r.Arrival))
				}
			}
			b.ReportMetric(median(arrivals), "p50-ns")
			b.ReportMetric(quantile(arrivals, 0.99), "p99-ns")
			b.ReportMetric(quantile(arrivals, 1), "max-ns")
		})
	}
}
