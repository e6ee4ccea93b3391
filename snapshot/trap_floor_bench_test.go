package snapshot

import (
	"fmt"
	"testing"

	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/engine"
	"stackshot/internal/engine/trap"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// A crowd of n threads: a twelfth in tasks of one, the rest in four large ones.
func benchCrowd(n int) []testtask.Kind {
	return []testtask.Kind{testtask.Bystanders(n / 12), testtask.ManyThreads(n / 4),
		testtask.ManyThreads(n / 4), testtask.ManyThreads(n / 4), testtask.ManyThreads(n / 6)}
}

// benchWorlds runs f beside each of the worlds that the floor is stated for.
func benchWorlds(b *testing.B, f func(*testing.B)) {
	for _, w := range []struct {
		name  string
		kinds []testtask.Kind
	}{
		{"threads=600", benchCrowd(600)},
		{"threads=4000", benchCrowd(4000)},
		{"process=4000", []testtask.Kind{testtask.ManyThreads(4000)}},
	} {
		b.Run(w.name, func(b *testing.B) {
			requireBPF(b)
			testtask.Start(b, w.kinds...)
			f(b)
		})
	}
}

// BenchmarkFloor holds engine trap against its floor: the same stop and the
// same walk, of whose threads each is unwound and nothing recorded or read a
// second time. One round measures every session once (see rounds).
//
//	floor1, trap1, thread1    one CPU at work; ns of stopped time per thread
//	floor, trap, task, thread all CPUs at work
//	trap…-census-% and so on  shares of the working CPUs' time
//
// trap is without latency and without user stacks, which the floor has not either;
// task and thread are the levels of --latency, default has everything that a capture
// has by default. What thread measures in the unwinder is the share of it in trap.
func BenchmarkFloor(b *testing.B) { benchWorlds(b, againstFloor) }

func againstFloor(b *testing.B) {
	main := firstWorker(b)
	session := func(cpus, latency string) *Session {
		return benchSession(b, Options{Engine: EngineTrap, CPUs: cpus, Latency: latency, UserStacks: UserStacksOff})
	}
	floor := func(cpus string) *Session {
		o := Options{Engine: EngineTrap, CPUs: cpus, Latency: LatencyOff, UserStacks: UserStacksOff}
		return benchSessionOf(b, o, engine.Hooks{Specs: bpftest.Knobs{Floor: true}})
	}
	r := &rounds{entrants: []*entrant{
		stopped("default", benchSession(b, Options{Engine: EngineTrap})),
		stopped("floor1", floor(main)), stopped("trap1", session(main, LatencyOff)),
		stopped("floor", floor("")), stopped("trap", session("", LatencyOff)),
		stopped("task", session("", LatencyTask)), stopped("thread", session("", LatencyThread)),
		stopped("thread1", session(main, LatencyThread)),
	}}
	r.run(b)
	for _, e := range r.entrants {
		b.ReportMetric(median(r.perThread(e.name)), e.name+"-ns/thread")
	}
	for _, pair := range [][2]string{{"trap1", "floor1"}, {"trap", "floor"}, {"trap", "trap1"}, {"floor", "floor1"}, {"task", "trap"}, {"thread", "trap"}, {"default", "trap"}, {"default", "floor"}} {
		r.reportRatio(b, pair[0], pair[1])
	}
	b.ReportMetric(r.ratio("trap", "trap1")/r.ratio("floor", "floor1"), "scaling/floor")
	b.ReportMetric(r.Of("trap").samples[0].threads, "threads")
	r.reportShares(b, "trap1", "thread1")
	r.reportShares(b, "trap", "thread")
}

// firstWorker is the main CPU, as the list that Options.CPUs takes.
func firstWorker(b *testing.B) string {
	return fmt.Sprint(benchSession(b, Options{Engine: EngineTrap}).plan.Main)
}

// share is a part of the time of the CPUs that worked.
type share struct {
	name string
	of   func(*kcdata.LinuxPhases) uint64
}

var shares = []share{
	{"record", func(p *kcdata.LinuxPhases) uint64 { return p.RecordNs }},
	{"census", func(p *kcdata.LinuxPhases) uint64 { return p.CensusNs }},
	{"verify", func(p *kcdata.LinuxPhases) uint64 { return p.VerifyNs }},
	{"queue", func(p *kcdata.LinuxPhases) uint64 { return p.QueueNs }},
	{"tail", func(p *kcdata.LinuxPhases) uint64 { return p.DrainNs + p.ReleaseNs }},
	{"arrival", func(p *kcdata.LinuxPhases) uint64 { return p.EnterNs + p.ArrivalNs + p.HoldNs }},
	{"exit", func(p *kcdata.LinuxPhases) uint64 { return p.ExitNs }},
}

// reportShares prints medians over the rounds. Of "record", what timed has
// measured in the unwinder in the same round is printed on its own.
func (r *rounds) reportShares(b *testing.B, name, timed string) {
	samples := r.Of(name).samples
	for _, part := range shares {
		var of []float64
		for i, s := range samples {
			ns := s.sum(part.of)
			if part.name == "record" {
				ns -= r.Of(timed).samples[i].unwinding() * s.threads
			}
			of = append(of, 100*ns/s.sum(totalOf))
		}
		b.ReportMetric(median(of), name+"-"+part.name+"-%")
	}
	var of []float64
	for i, s := range samples {
		of = append(of, 100*r.Of(timed).samples[i].unwinding()*s.threads/s.sum(totalOf))
	}
	b.ReportMetric(median(of), name+"-unwind-%")
}

func totalOf(p *kcdata.LinuxPhases) uint64 { return p.TotalNs }

// sum adds a part over the CPUs that worked.
func (s *sampleRow) sum(of func(*kcdata.LinuxPhases) uint64) (ns float64) {
	for i := range s.phases {
		for _, cpu := range s.worked {
			if s.phases[i].CPU == cpu {
				ns += float64(of(&s.phases[i]))
			}
		}
	}
	return ns
}

// unwinding is the time in the kernel's unwinder, ns per thread.
func (s *sampleRow) unwinding() float64 {
	return s.sum(func(p *kcdata.LinuxPhases) uint64 { return p.UnwindNs }) / s.threads
}

// BenchmarkSplit compares sizes of a task's parts, all CPUs at work.
func BenchmarkSplit(b *testing.B) { benchWorlds(b, acrossSplits) }

func acrossSplits(b *testing.B) {
	r := &rounds{}
	for _, n := range []uint32{8, 16, 32, 64, 128} {
		s := benchSession(b, Options{Engine: EngineTrap, Latency: LatencyOff})
		s.engine.(*trap.Engine).Split = n
		r.entrants = append(r.entrants, stopped(fmt.Sprint("split", n), s))
	}
	r.run(b)
	for _, e := range r.entrants {
		b.ReportMetric(median(r.perThread(e.name)), e.name+"-ns/thread")
		if e.name != "split64" {
			r.reportRatio(b, e.name, "split64")
		}
	}
}
