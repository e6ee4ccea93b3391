package snapshot

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/stacks"
	"stackshot/internal/topology"
	"stackshot/kcdata"
)

// sampled is one sample on its way into the file.
type sampled struct {
	bpf.Sample
	delay uint64 // after the window's end, ns
	ran   bool   // its CPU was not stopped: what it ran is what the sample says
}

// startSampler opens the sampler; without one the captures go on, and the
// reason stands in each.
func (s *Session) startSampler() {
	var objects *bpf.Objects
	switch e := s.engine.(type) {
	case *pull:
		objects = e.objects
	case *trap:
		objects = e.objects
	}
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
			c.addSample(sm, end)
		}
	}
}

func (c *captured) addSample(s bpf.Sample, windowEnd uint64) {
	v := sampled{Sample: s}
	if s.At > windowEnd {
		v.delay = s.At - windowEnd
	}
	v.ran = c.noteRan(&s)
	c.samples = append(c.samples, v)
}

// unstopped are the CPUs on which others ran meanwhile.
func (c *captured) unstopped() (out []int) {
	for i := range c.cpus {
		if c.isolation == IsolationNone || c.cpus[i].Flags&(kcdata.CPUMissed|kcdata.CPULeft) != 0 {
			out = append(out, int(c.cpus[i].CPU))
		}
	}
	return out
}

// windowEnd is when the first CPU was released; began if none was held.
func (c *captured) windowEnd(began uint64) uint64 {
	end := uint64(0)
	for i := range c.cpus {
		if at := c.cpus[i].ReleaseNs; at != 0 && (end == 0 || at < end) {
			end = at
		}
	}
	if end == 0 {
		return began
	}
	return end
}

// noteRan says in the CPU's record what it ran, unless the stop took it and
// knows better.
func (c *captured) noteRan(s *bpf.Sample) bool {
	for i := range c.cpus {
		r := &c.cpus[i]
		if int(r.CPU) != s.CPU || r.Flags&(kcdata.CPUStopped|kcdata.CPURanKnown) != 0 || s.Tid == 0 && !s.Idle {
			continue
		}
		r.Flags |= kcdata.CPURanKnown
		r.RanTid, r.RanTgid = s.Tid, s.Tgid
		if s.Idle {
			r.Flags |= kcdata.CPUIdle
		}
		return true
	}
	return false
}

// placer puts samples into the containers of their threads.
type placer struct {
	left   map[uint64]*sampled // by container id
	extra  []*sampled          // of threads that were sampled on another CPU as well
	names  *names
	redact bool
}

func newPlacer(c *captured, n *names, redact bool) *placer {
	p := &placer{left: map[uint64]*sampled{}, names: n, redact: redact}
	for i := range c.samples {
		s := &c.samples[i]
		if id := s.container(); p.left[id] == nil {
			p.left[id] = s
		} else {
			p.extra = append(p.extra, s)
		}
	}
	return p
}

func (s *sampled) container() uint64 {
	if s.Idle {
		return kcdata.IdleThreadID(uint32(s.CPU))
	}
	return uint64(s.Tid)
}

// place finds the samples of a task's threads.
func (p *placer) place(t *taskBytes) error {
	if len(p.left) == 0 {
		return nil
	}
	for i := range t.threads {
		th := &t.threads[i]
		s := p.left[th.id]
		if s == nil || s.Tgid != t.linux.Tgid {
			continue
		}
		delete(p.left, th.id)
		if err := p.put(t, th, s); err != nil {
			return err
		}
	}
	return nil
}

// put adds the sample's items before the end of the thread and makes its
// records agree with them. A kernel stack that is there already was whole when
// it was recorded, and stays.
func (p *placer) put(t *taskBytes, th *threadAt, s *sampled) error {
	w, bytes := newSection()
	frames, users := s.Kernel, 0
	if th.kernel.count > 0 {
		frames = nil
	}
	if len(frames) > 0 {
		w.note(w.Uint64s(kcdata.TypeKernStackLR64, p.names.sampled(frames)))
	}
	if len(s.UserStack) > 0 && !th.stack && !p.redact {
		w.note(w.Uint64s(kcdata.TypeUserStackLR64, s.UserStack))
		th.stack, th.sampled, users = true, s.UserStack, len(s.UserStack)
	}
	rec := kcdata.LinuxSample{AtNs: s.At, DelayNs: s.delay, CPU: uint32(s.CPU), IP: s.IP}
	if s.User {
		rec.User = 1
	}
	if p.redact {
		rec.IP = 0
	}
	w.record(kcdata.TypeLinuxSample, &rec)
	if w.err != nil {
		return w.err
	}
	t.insert(th.end, bytes())
	return s.mark(t, th, len(frames), users)
}

// mark makes the thread's records say what the sample says; frames of its
// kernel stack were put in, and users of its user stack.
func (s *sampled) mark(t *taskBytes, th *threadAt, frames, users int) error {
	var lx kcdata.LinuxThread
	var snap kcdata.ThreadSnapshot
	if th.linux == 0 || th.snap == 0 {
		return nil
	}
	if err := kcdata.Unmarshal(t.body[th.linux:], &lx); err != nil {
		return err
	}
	if err := kcdata.Unmarshal(t.body[th.snap:], &snap); err != nil {
		return err
	}
	if s.ran {
		lx.OnCPU, lx.CPU = 1, uint32(s.CPU)
		lx.Present = lx.Present&^kcdata.ThreadUserMode | kcdata.ThreadHasOnCPU
		if s.User {
			lx.Present |= kcdata.ThreadUserMode
		}
		snap.SSFlags |= kcdata.SSOnCore
	}
	if frames > 0 {
		lx.KstackDepth, lx.KstackErr = uint32(frames), 0
		lx.Present |= kcdata.ThreadHasStack
	}
	if frames == bpf.SampleFrames {
		lx.Present |= kcdata.ThreadTruncated
		snap.SSFlags |= kcdata.SSTruncatedKernel
	}
	kcdata.Marshal(t.body[th.linux:th.linux], &lx)
	kcdata.Marshal(t.body[th.snap:th.snap], &snap)
	stacks.SetFlags(t.body[th.snap:], func(flags uint64) uint64 {
		if users == bpf.SampleFrames {
			flags |= kcdata.SSTruncatedUser
		}
		return flags
	})
	return nil
}

// lost names the samples whose threads are not in the file. The idle thread of
// a CPU without a worker never is.
func (p *placer) lost(c *captured) {
	for _, s := range p.left {
		p.extra = append(p.extra, s)
	}
	slices.SortFunc(p.extra, func(a, b *sampled) int { return a.CPU - b.CPU })
	for _, s := range p.extra {
		if !s.Idle {
			c.warn("sample_lost", fmt.Sprintf("the sample of CPU %d, thread %d (%s), found no place in the file", s.CPU, s.Tid, s.Comm))
		}
	}
}
