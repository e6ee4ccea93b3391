package snapshot

import (
	"errors"
	"fmt"
	"slices"

	"stackshot/internal/bpf"
	"stackshot/internal/stacks"
	"stackshot/kcdata"
)

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
		if id := containerOf(s); p.left[id] == nil {
			p.left[id] = s
		} else {
			p.extra = append(p.extra, s)
		}
	}
	return p
}

func containerOf(s *sampled) uint64 {
	if s.idle {
		return kcdata.IdleThreadID(uint32(s.cpu))
	}
	return uint64(s.tid)
}

// place finds the samples of a task's threads.
func (p *placer) place(t *taskBytes) error {
	if len(p.left) == 0 {
		return nil
	}
	for i := range t.threads {
		th := &t.threads[i]
		s := p.left[th.id]
		if s == nil || s.tgid != t.linux.Tgid {
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
	frames, users := s.kernel, 0
	if len(th.kernel.Item().Data) > 0 {
		frames = nil
	}
	if len(frames) > 0 {
		w.note(w.Uint64s(kcdata.TypeKernStackLR64, p.names.sampled(frames)))
	}
	if len(s.userStack) > 0 && !th.stack && !p.redact {
		w.note(w.Uint64s(kcdata.TypeUserStackLR64, s.userStack))
		th.stack, th.sampled, users = true, s.userStack, len(s.userStack)
	}
	rec := kcdata.LinuxSample{AtNs: s.at, DelayNs: s.delay, CPU: uint32(s.cpu), IP: s.ip}
	if s.user {
		rec.User = 1
	}
	if p.redact {
		rec.IP = 0
	}
	w.record(kcdata.TypeLinuxSample, &rec)
	if w.err != nil {
		return w.err
	}
	t.items.InsertBefore(th.end, bytes())
	return th.markSampled(s, len(frames), users)
}

// markSampled makes the thread's records say what the sample says; frames of its
// kernel stack were put in, and users of its user stack.
func (th *threadAt) markSampled(s *sampled, frames, users int) error {
	if th.linux.IsZero() || th.snap.IsZero() {
		return nil
	}
	err := kcdata.Patch(th.linux, func(lx *kcdata.LinuxThread) {
		if s.ran {
			lx.OnCPU, lx.CPU = 1, uint32(s.cpu)
			lx.Present = lx.Present&^kcdata.ThreadUserMode | kcdata.ThreadHasOnCPU
			if s.user {
				lx.Present |= kcdata.ThreadUserMode
			}
		}
		if frames > 0 {
			lx.KstackDepth, lx.KstackErr = uint32(frames), 0
			lx.Present |= kcdata.ThreadHasStack
		}
		if frames == bpf.SampleFrames {
			lx.Present |= kcdata.ThreadTruncated
		}
	})
	var set uint64
	if s.ran {
		set |= kcdata.SSOnCore
	}
	if frames == bpf.SampleFrames {
		set |= kcdata.SSTruncatedKernel
	}
	if users == bpf.SampleFrames {
		set |= kcdata.SSTruncatedUser
	}
	return errors.Join(err, kcdata.Patch(th.snap, func(snap *kcdata.ThreadSnapshot) { stacks.SetFlags(snap, set, 0) }))
}

// lost names the samples whose threads are not in the file. The idle thread of
// a CPU without a worker never is.
func (p *placer) lost(c *captured) {
	for _, s := range p.left {
		p.extra = append(p.extra, s)
	}
	slices.SortFunc(p.extra, func(a, b *sampled) int { return a.cpu - b.cpu })
	for _, s := range p.extra {
		if !s.idle {
			c.warn("sample_lost", fmt.Sprintf("the sample of CPU %d, thread %d (%s), found no place in the file", s.cpu, s.tid, s.comm))
		}
	}
}
