package sample

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/internal/engine/stop"
	"stackshot/internal/procfs"
)

// Sampler samples CPUs by a perf event on each. It is used while the machine runs, by one
// goroutine at a time. To change an event, the kernel calls a function on the event's
// CPU and waits for it with preemption off: if that CPU takes no interrupts, the caller
// hangs for good. So a CPU must show that it takes interrupts before its event is
// changed. It may stop taking them right after; user space cannot close that gap.
type Sampler struct {
	Objects *bpf.Objects
	owned   bool // objects are the sampler's own
	Proc    procfs.FS
	Events  map[int]*bpf.SampleEvent // of the CPUs that took interrupts when it was made
}

const (
	SamplePatience = 50 * time.Millisecond // a tick is 10 ms at most, and /proc/stat counts in those
	sampleBudget   = 5 * time.Millisecond  // an event is enabled for so long at most
	samplePoll     = 500 * time.Microsecond
)

// Open makes the events of the CPUs. objects: those of the session's
// engine; nil: it loads its own.
func Open(objects *bpf.Objects, cfg bpf.Config, proc procfs.FS, cpus []int) (*Sampler, error) {
	p := &Sampler{Objects: objects, Proc: proc, Events: map[int]*bpf.SampleEvent{}}
	before, err := proc.Activity()
	if err != nil {
		return nil, fmt.Errorf("which CPUs take interrupts is not known: %w", err)
	}
	if objects == nil {
		if p.Objects, err = bpf.LoadSampler(cfg); err != nil {
			return nil, err
		}
		p.owned = true
		err = stop.ProbeCensus(p.Objects) // leaves the depth of our pid namespace
	} else if objects.Sample == nil {
		return nil, fmt.Errorf("%w: program sample was refused", bpf.ErrUnsupported)
	}
	if err == nil {
		err = p.openEvents(p.awake(cpus, p.Silent(cpus, before)))
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Sampler) openEvents(cpus []int) error {
	for _, cpu := range cpus {
		if p.Events[cpu] != nil {
			continue
		}
		e, err := p.Objects.OpenSampleEvent(cpu)
		if errors.Is(err, unix.ENODEV) { // offline by now
			continue
		}
		if err != nil {
			return err
		}
		p.Events[cpu] = e
	}
	return nil
}

// Silent returns the CPUs that have shown no sign of life since before, after waiting for
// one at most SamplePatience. Signs are an interrupt, idle time, and time in user mode.
// The last two are for CPUs without a tick: they may idle, or run in user mode, for long
// without any interrupt, and yet take one when it comes.
func (p *Sampler) Silent(cpus []int, before map[int]procfs.CPUActivity) []int {
	deadline := time.Now().Add(SamplePatience)
	for {
		now, err := p.Proc.Activity()
		var out []int
		for _, cpu := range cpus {
			if err != nil || now[cpu] == before[cpu] {
				out = append(out, cpu)
			}
		}
		if len(out) == 0 || time.Now().After(deadline) {
			return out
		}
		clock.Nap(time.Millisecond)
	}
}

func (p *Sampler) awake(cpus, silent []int) (out []int) {
	for _, cpu := range cpus {
		if !slices.Contains(silent, cpu) {
			out = append(out, cpu)
		}
	}
	return out
}

// Take asks the CPUs for a sample each. deaf are those that took no interrupt
// for SamplePatience and were left alone. A CPU that answers too late is
// missing from both.
func (p *Sampler) Take(cpus []int) (got []capture.Sample, deaf []int, err error) {
	before, err := p.Proc.Activity()
	if err != nil {
		return nil, nil, err
	}
	deaf = p.Silent(cpus, before)
	awake := p.awake(cpus, deaf)
	if err := p.openEvents(awake); err != nil {
		return nil, deaf, err
	}
	for _, cpu := range awake {
		if e := p.Events[cpu]; e != nil && p.Objects.Samples.Want(cpu) {
			err = errors.Join(err, e.Enable())
		}
	}
	got = p.Await(awake, time.Now().Add(sampleBudget))
	return got, deaf, errors.Join(err, p.disable(awake, got))
}

// Await collects samples until all CPUs have answered or the deadline has passed. It
// sleeps meanwhile: the CPU it runs on may be one of those that are asked.
func (p *Sampler) Await(cpus []int, deadline time.Time) (got []capture.Sample) {
	waiting := append([]int(nil), cpus...)
	for len(waiting) > 0 {
		over := time.Now().After(deadline)
		rest := waiting[:0]
		for _, cpu := range waiting {
			if s, ok := p.Objects.Samples.Take(cpu); ok {
				got = append(got, s)
			} else if !over || !p.Objects.Samples.GiveUp(cpu) && time.Now().Before(deadline.Add(sampleBudget)) {
				rest = append(rest, cpu) // still to answer, or its program is writing
			}
		}
		if waiting = rest; len(waiting) > 0 {
			clock.Nap(samplePoll)
		}
	}
	return got
}

// disable stops the events. The event of a CPU that gave no sample is stopped only if the
// CPU shows that it still takes interrupts. Else the event stays enabled, without effect:
// no sample is asked for.
func (p *Sampler) disable(cpus []int, got []capture.Sample) (err error) {
	answered := map[int]bool{}
	for _, s := range got {
		answered[s.CPU] = true
	}
	var late []int
	for _, cpu := range cpus {
		if e := p.Events[cpu]; e == nil {
			continue
		} else if answered[cpu] {
			err = errors.Join(err, e.Disable())
		} else {
			late = append(late, cpu)
		}
	}
	for _, cpu := range p.listening(late) {
		err = errors.Join(err, p.Events[cpu].Disable())
	}
	return err
}

// listening are those of the CPUs that take interrupts now.
func (p *Sampler) listening(cpus []int) []int {
	if len(cpus) == 0 {
		return nil
	}
	before, err := p.Proc.Activity()
	if err != nil {
		return nil
	}
	return p.awake(cpus, p.Silent(cpus, before))
}

// Close closes the events, except those of CPUs that take no interrupts. The kernel closes
// these when the process ends.
func (p *Sampler) Close() (err error) {
	var cpus []int
	for cpu := range p.Events {
		cpus = append(cpus, cpu)
	}
	for _, cpu := range p.listening(cpus) {
		err = errors.Join(err, p.Events[cpu].Close())
		delete(p.Events, cpu)
	}
	if p.owned {
		err = errors.Join(err, p.Objects.Close())
	}
	return err
}
