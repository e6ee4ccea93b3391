package collate

import (
	"errors"
	"fmt"
	"slices"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/stacks"
	"stackshot/kcdata"
)

// placer puts samples into the containers of their threads.
type placer struct {
	left   map[uint64]*capture.Sample // by container id
	extra  []*capture.Sample          // of threads that were sampled on another CPU as well
	names  *names
	redact bool
}

func newPlacer(c *capture.Raw, n *names, redact bool) *placer {
	p := &placer{left: map[uint64]*capture.Sample{}, names: n, redact: redact}
	for i := range c.Samples {
		s := &c.Samples[i]
		if id := containerOf(s); p.left[id] == nil {
			p.left[id] = s
		} else {
			p.extra = append(p.extra, s)
		}
	}
	return p
}

func containerOf(s *capture.Sample) uint64 {
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

// put adds the sample's items before the end of the thread's container, and makes the
// thread's records agree with them. If a kernel stack was recorded, it is whole, and stays.
func (p *placer) put(t *taskBytes, th *threadAt, s *capture.Sample) error {
	w, bytes := kcdata.NewSticky()
	frames, users := s.Kernel, 0
	if len(th.kernel.Item().Data) > 0 {
		frames = nil
	}
	if len(frames) > 0 {
		w.Note(w.Uint64s(kcdata.TypeKernStackLR64, p.names.sampled(frames)))
	}
	if len(s.UserStack) > 0 && !th.stack && !p.redact {
		w.Note(w.Uint64s(kcdata.TypeUserStackLR64, s.UserStack))
		th.stack, th.sampled, users = true, s.UserStack, len(s.UserStack)
	}
	rec := kcdata.LinuxSample{AtNs: s.At, DelayNs: s.Delay, CPU: uint32(s.CPU), IP: s.IP}
	if s.User {
		rec.User = 1
	}
	if p.redact {
		rec.IP = 0
	}
	w.Record(kcdata.TypeLinuxSample, &rec)
	if w.Err != nil {
		return w.Err
	}
	t.items.InsertBefore(th.end, bytes())
	return th.markSampled(s, len(frames), users)
}

// markSampled makes the thread's records say what the sample says. frames and users are how
// many frames of its kernel and user stack were put in.
func (th *threadAt) markSampled(s *capture.Sample, frames, users int) error {
	if th.linux.IsZero() || th.snap.IsZero() {
		return nil
	}
	err := kcdata.Patch(th.linux, func(lx *kcdata.LinuxThread) {
		if s.Ran {
			lx.OnCPU, lx.CPU = 1, uint32(s.CPU)
			lx.Present = lx.Present&^kcdata.ThreadUserMode | kcdata.ThreadHasOnCPU
			if s.User {
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
	if s.Ran {
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

// lost warns of samples whose threads are not in the file. The idle thread of a CPU
// without a worker never is in the file, so it is not named.
func (p *placer) lost(c *capture.Raw) {
	for _, s := range p.left {
		p.extra = append(p.extra, s)
	}
	slices.SortFunc(p.extra, func(a, b *capture.Sample) int { return a.CPU - b.CPU })
	for _, s := range p.extra {
		if !s.Idle {
			c.Warn("sample_lost", fmt.Sprintf("the sample of CPU %d, thread %d (%s), found no place in the file", s.CPU, s.Tid, s.Comm))
		}
	}
}
