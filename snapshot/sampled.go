package snapshot

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/engine/sample"
	"stackshot/internal/topology"
)

// startSampler opens the sampler. If that fails captures go on without it, and each has
// the reason as a warning.
func (s *Session) startSampler(objects *bpf.Objects) {
	cfg := bpf.Config{CPUs: possibleCPUs(s.plan), SelfTgid: uint32(unix.Getpid()), Redact: s.options.Redact}
	p, err := sample.Open(objects, cfg, s.machine, s.plan.Topology.Online())
	if err != nil {
		s.warn("no_samples", "what runs on a CPU that is not stopped has no stack: "+err.Error())
		return
	}
	s.sampler = p
}

// asked is what came of asking some CPUs.
type asked struct {
	cpus []int
	got  []capture.Sample
	deaf []int
	took time.Duration
	err  error
}

// ask samples CPUs. The machine runs then, and this process holds the machine's lock.
func (s *Session) ask(cpus []int) asked {
	a := asked{cpus: cpus}
	if s.sampler == nil || len(cpus) == 0 {
		return a
	}
	began := time.Now()
	a.got, a.deaf, a.err = s.sampler.Take(cpus)
	a.took = time.Since(began)
	return a
}

// addSamples asks the CPUs that were not stopped, except those that were asked (early)
// as soon as they were missed. If there was no window, delays count from began.
func (s *Session) addSamples(c *capture.Raw, began int64, early []asked) {
	rest := c.Unstopped()
	for _, a := range early {
		rest = slices.DeleteFunc(rest, func(cpu int) bool { return slices.Contains(a.cpus, cpu) })
	}
	end := c.WindowEnd(uint64(began))
	for _, a := range append(early, s.ask(rest)) {
		if a.err != nil {
			c.Warn("sample_failed", "what runs on CPU "+topology.FormatCPUList(a.cpus)+" has no stack: "+a.err.Error())
		}
		for _, cpu := range a.deaf {
			c.Warn("cpu_deaf", fmt.Sprintf("CPU %d took no interrupt in %d ms: no sample (a loop with interrupts off?)", cpu, a.took.Milliseconds()))
		}
		for _, sm := range a.got {
			c.AddSample(sm, end)
		}
	}
}
