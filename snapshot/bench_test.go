package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"stackshot/internal/engine"
	"stackshot/internal/testtask"
)

// benchSession is a session kept open over a benchmark.
func benchSession(b *testing.B, o Options) *Session {
	b.Helper()
	return benchSessionOf(b, o, engine.Hooks{})
}

func benchSessionOf(b *testing.B, o Options, h engine.Hooks) *Session {
	b.Helper()
	requireBPF(b)
	if o.Engine == EngineTrap {
		requireTrap(b)
	}
	o.LockWait, o.ArrivalBudget = time.Minute, time.Second // measure late CPUs, do not cut them off
	s, err := open(o, h)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// benchTake makes a whole call; what was disturbed is taken again.
func benchTake(b *testing.B, s *Session) (*Result, time.Duration) {
	b.Helper()
	var file bytes.Buffer
	until := time.Now().Add(roundsLimit)
	for ; ; time.Sleep(roundRest) {
		file.Reset()
		began := time.Now()
		r, err := s.Take(context.Background(), Request{Output: &file})
		d := time.Since(began)
		good := err == nil && (!s.engine.Caps().Stops || r.Whole() && r.StopBroken == 0)
		switch {
		case good:
			return r, d
		case time.Now().Before(until) && (err == nil || errors.Is(err, engine.ErrNotStopped) || errors.Is(err, ErrBusy)):
		default:
			b.Fatalf("%v, %+v", err, r)
		}
	}
}

// BenchmarkCapture makes whole calls, file and all, in turn with all CPUs
// recording, with one, and with procfs, so that the ratios hold on a machine
// whose speed drifts. Metrics: medians of ns the machine stood still per thread,
// of the whole call (waiting for other captures included), and the ratios.
func BenchmarkCapture(b *testing.B) {
	for _, engine := range []string{EngineTrap, EnginePull} {
		for _, threads := range []int{600, 4000} {
			b.Run(fmt.Sprint(engine, "/threads=", threads), func(b *testing.B) {
				requireBPF(b)
				testtask.Start(b, benchCrowd(threads)...)
				wholeCalls(b, engine)
			})
		}
	}
}

func wholeCalls(b *testing.B, engine string) {
	all := benchSession(b, Options{Engine: engine})
	one := benchSession(b, Options{Engine: engine, CPUs: fmt.Sprint(all.plan.Main)})
	proc := benchSession(b, Options{Engine: EngineProcfs})
	var stoppedAll, stoppedOne, total, procfs, perThread []float64
	var last *Result
	until := time.Now().Add(roundsLimit)
	for b.Loop() {
		if last != nil && time.Now().After(until) {
			continue
		}
		r, d := benchTake(b, all)
		stoppedAll = append(stoppedAll, float64(r.Stopped))
		total = append(total, float64(d))
		perThread = append(perThread, float64(r.Stopped)/float64(r.Threads))
		last = r
		r, _ = benchTake(b, one)
		stoppedOne = append(stoppedOne, float64(r.Stopped))
		r, _ = benchTake(b, proc)
		procfs = append(procfs, float64(r.Elapsed))
	}
	b.ReportMetric(0, "ns/op") // says nothing: a round is three captures
	b.ReportMetric(float64(len(total)), "rounds")
	b.ReportMetric(float64(last.Threads), "threads")
	b.ReportMetric(median(perThread), "stopped-ns/thread")
	b.ReportMetric(median(total), "call-ns")
	b.ReportMetric(float64(last.Bytes)/float64(last.Threads), "B/thread")
	b.ReportMetric(median(procfs)/float64(last.Threads), "procfs-ns/thread")
	b.ReportMetric(median(ratios(stoppedAll, procfs)), engine+"/procfs")
	b.ReportMetric(median(ratios(stoppedAll, stoppedOne)), "allcpus/onecpu")
}

// BenchmarkArrival measures first to last arrival, on the machine as it is and
// with three hogs on every CPU, with both engines in turn.
func BenchmarkArrival(b *testing.B) {
	for _, hogs := range []int{0, 3} {
		b.Run(fmt.Sprint("hogs=", hogs), func(b *testing.B) {
			trap, pull := benchSession(b, Options{Engine: EngineTrap}), benchSession(b, Options{Engine: EnginePull})
			for _, cpu := range trap.plan.Stop {
				if hogs > 0 {
					testtask.CPUHogs(b, cpu, hogs)
				}
			}
			r := &rounds{entrants: []*entrant{stopped("trap", trap), stopped("pull", pull)}}
			r.run(b)
			for _, e := range r.entrants {
				var ns []float64
				for _, s := range e.samples {
					ns = append(ns, s.arrival)
				}
				b.ReportMetric(median(ns), e.name+"-p50-ns")
				b.ReportMetric(quantile(ns, 0.99), e.name+"-p99-ns")
				b.ReportMetric(quantile(ns, 1), e.name+"-max-ns")
			}
		})
	}
}
