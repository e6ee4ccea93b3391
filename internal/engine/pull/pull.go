package pull

import (
	"context"
	"fmt"
	"os"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
	"stackshot/kcdata"
)

// Engine is engine pull. Its workers, Go threads at SCHED_FIFO 99 that are pinned to their
// CPUs, hold the machine and take items from the queues themselves.
type Engine struct {
	team       *stop.Team
	programs   *bpf.Pull
	Mem        *engine.Memory
	retired    []*engine.Memory    // workers that are away may still write to it
	Recordings []*engine.Recording // by a worker's slot
}

// New loads the programs of an engine over a team. Errors: bpf.ErrUnsupported.
func New(m *stop.Team) (*Engine, error) {
	programs, err := m.Objects.LoadPull()
	if err != nil {
		return nil, err
	}
	p := &Engine{team: m, programs: programs}
	for range m.Workers {
		p.Recordings = append(p.Recordings, new(engine.Recording))
	}
	return p, nil
}

func (p *Engine) Caps() engine.Caps {
	c := p.team.Caps(capture.Pull, p.team.Level)
	c.Warnings = append(c.Warnings, p.Lacks()...)
	return c
}

// Lacks are the warnings of engine pull alone: programs that are missing, and that it takes fewer bytes of
// user stacks than were asked for, as all records of one thread must fit one buffer of the kernel.
func (p *Engine) Lacks() []kcdata.Warning {
	list := engine.ProgramsMissing(p.programs.Missing)
	c := &p.team.Bpf
	most := c.PullStackBytes(0)
	if c.User.Mode == bpf.UserAuto && c.User.Bytes > most {
		list = append(list, kcdata.Warning{
			Code: "user_stack_bytes", Text: fmt.Sprintf("engine pull takes at most %d bytes of a user stack, less 16 for each link of its frame-pointer chain", most),
		})
	}
	return list
}

// Prepare maps, populates and locks memory for tries of this size. It does not reuse
// memory that a worker that is away may still write to.
func (p *Engine) Prepare(sz engine.Size) error {
	sz = p.Mem.AtLeast(sz)
	if p.team.AnyAway() && p.Mem != nil {
		p.retired, p.Mem = append(p.retired, p.Mem), nil
	}
	if p.Mem.Fits(sz) {
		return nil
	}
	p.Mem.Free()
	p.Mem = nil
	var err error
	p.Mem, err = engine.NewMemory(sz)
	return err
}

// Capture makes one try. The result refers to the engine's memory and holds
// until the next capture.
func (p *Engine) Capture(ctx context.Context, j engine.Job) (*capture.Raw, error) {
	here, away := p.team.Present()
	if len(here) == 0 {
		return nil, engine.ErrNobodyLeft
	}
	t, err := p.PrepareTry(j, here)
	if err != nil {
		return nil, err
	}
	defer t.CloseCensus()
	missing, err := p.team.Stop(ctx, t.Try)
	p.programs.KeepAlive()
	if err != nil {
		return nil, err
	}
	return p.result(t, append(missing, away...))
}

func (p *Engine) PrepareTry(j engine.Job, here []*stop.Worker) (*try, error) {
	j.Size = p.Mem.AtLeast(j.Size)
	if err := p.Prepare(j.Size); err != nil {
		return nil, err
	}
	p.Mem.Reset()
	t := &try{
		mem: p.Mem, workers: len(here), pids: j.Pids, self: uint32(os.Getpid()), latency: p.team.Bpf.Latency,
		recordings: p.Recordings, programs: p.programs,
	}
	t.stopTaking = func() bool { return !t.State.Recording() }
	for _, w := range here {
		p.Recordings[w.Slot].Begin(p.Mem, w.Cluster, j.Size.Tasks)
	}
	t.Try = p.team.NewTry(j, here, new(stop.Words), t)
	return t, t.openCensus(p.team.Objects.Census.FD())
}

// result makes a raw capture of what the workers left behind.
func (p *Engine) result(t *try, missing []*stop.Worker) (*capture.Raw, error) {
	c := &capture.Raw{
		Engine: capture.Pull, Isolation: p.team.Level, SeenTasks: t.seenTasks, SeenThreads: t.seenThreads,
		RanShort: t.State.RanShort(), CensusErr: t.censusErr, WholeCensus: t.pids != nil || t.censusWhole,
		WaitSources: p.team.Objects.WaitSources, FileSources: p.team.Objects.FileSources,
	}
	for _, w := range t.Here {
		if !w.Away { // else its memory is still its own
			w.Did = p.Recordings[w.Slot].End(c)
		}
	}
	c.Second = t.second()
	return c, p.team.Describe(c, t.Try, p.Mem, missing)
}

func (p *Engine) Release() { p.team.Release() }

// Close gives everything back, except what a worker that is away may still write to.
func (p *Engine) Close() error {
	if !p.team.StopWorkers() {
		return nil
	}
	for _, m := range append(p.retired, p.Mem) {
		m.Free()
	}
	p.retired, p.Mem = nil, nil
	p.programs.Close()
	return nil
}
