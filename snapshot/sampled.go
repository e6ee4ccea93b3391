package snapshot

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/topology"
)

// startSampler opens the sampler; without one the captures go on, and the
// reason stands in each.
func (s *Session) startSampler(objects *bpf.Objects) {
	cfg := bpf.Config{CPUs: possibleCPUs(s.plan), SelfTgid: uint32(unix.Getpid()), Redact: s.options.Redact}
	p, err := openSampler(objects, cfg, s.machine, s.plan.Topology.Online())
	if err != nil {
		s.warn("no_samples", "what runs on a CPU that is not stopped has no stack: "+err.Error())
		return
	}
	s.sampler = p
}

// asked is what came of asking some CPUs.
type asked struct {
	cpus []int
	got  []bpf.Sample
	deaf []int
	took time.Duration
	err  error
}

// ask asks CPUs what they run. The world runs, and nobody else may capture.
func (s *Session) ask(cpus []int) asked {
	a := asked{cpus: cpus}
	if s.sampler == nil || len(cpus) == 0 {
		return a
	}
	began := time.Now()
	a.got, a.deaf, a.err = s.sampler.take(cpus)
	a.took = time.Since(began)
	return a
}

// addSamples asks the CPUs that were not stopped, but those that were asked as
// soon as they were missed. began is where delays count from if there was no
// window.
func (s *Session) addSamples(c *captured, began int64, early []asked) {
	rest := c.unstopped()
	for _, a := range early {
		rest = slices.DeleteFunc(rest, func(cpu int) bool { return slices.Contains(a.cpus, cpu) })
	}
	end := c.windowEnd(uint64(began))
	for _, a := range append(early, s.ask(rest)) {
		if a.err != nil {
			c.warn("sample_failed", "what runs on CPU "+topology.FormatCPUList(a.cpus)+" has no stack: "+a.err.Error())
		}
		for _, cpu := range a.deaf {
			c.warn("cpu_deaf", fmt.Sprintf("CPU %d took no interrupt in %d ms: no sample (a loop with interrupts off?)", cpu, a.took.Milliseconds()))
		}
		for _, sm := range a.got {
			c.addSample(sampled{
				cpu: sm.CPU, tid: sm.Tid, tgid: sm.Tgid, comm: sm.Comm, idle: sm.Idle, user: sm.User,
				at: sm.At, ip: sm.IP, kernel: sm.Kernel, userStack: sm.UserStack,
			}, end)
		}
	}
}
