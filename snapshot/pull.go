package snapshot

import (
	"context"
	"fmt"
	"os"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
)

// pull is the engine in which the workers, Go threads at SCHED_FIFO 99 pinned
// to their CPUs, hold the machine and pull tasks from the queues themselves.
type pull struct {
	team       *team
	mem        *memory
	retired    []*memory    // workers that are away may still write to it
	recordings []*recording // by a worker's slot
}

// newPull is an engine over a team.
func newPull(m *team) *pull {
	p := &pull{team: m}
	for range m.workers {
		p.recordings = append(p.recordings, new(recording))
	}
	return p
}

func (p *pull) caps() caps {
	m := p.team
	c := caps{name: enginePull, isolation: m.level, stops: true, userStacks: m.userWhy == nil, objects: m.objects, warnings: m.lacks()}
	if why := m.fifoRefused(); why != nil {
		c.warnings = append(c.warnings, isolationNoneWarning(why))
	}
	c.warnings = append(c.warnings, p.userCapped()...)
	return c
}

// userCapped is the warning that engine pull takes fewer bytes than were asked
// for: what it says of one thread has to fit a buffer of the kernel's.
func (p *pull) userCapped() (list []kcdata.Warning) {
	c := &p.team.bpf
	most := c.PullStackBytes(0)
	if c.User.Mode == bpf.UserAuto && c.User.Bytes > most {
		list = append(list, kcdata.Warning{
			Code: "user_stack_bytes", Text: fmt.Sprintf("engine pull takes at most %d bytes of a user stack, less 16 for each link of its frame-pointer chain", most),
		})
	}
	return list
}

// prepare maps, populates and locks memory for tries of this size. What a worker
// that is away may still write to is left to it.
func (p *pull) prepare(sz size) error {
	sz = p.mem.atLeast(sz)
	if p.team.anyAway() && p.mem != nil {
		p.retired, p.mem = append(p.retired, p.mem), nil
	}
	if p.mem.fits(sz) {
		return nil
	}
	if p.mem != nil {
		p.mem.free()
		p.mem = nil
	}
	var err error
	p.mem, err = newMemory(sz)
	return err
}

// capture makes one try. The result refers to the engine's memory and holds
// until the next capture.
func (p *pull) capture(ctx context.Context, j job) (*captured, error) {
	here, away := p.team.present()
	if len(here) == 0 {
		return nil, errNobodyLeft
	}
	t, err := p.prepareTry(j, here)
	if err != nil {
		return nil, err
	}
	defer t.closeCensus()
	p.team.hooks.reach(stagePrepare)
	missing, err := p.team.stop(ctx, t.try)
	if err != nil {
		return nil, err
	}
	return p.result(t, append(missing, away...))
}

func (p *pull) prepareTry(j job, here []*worker) (*pullTry, error) {
	j.size = p.mem.atLeast(j.size)
	if err := p.prepare(j.size); err != nil {
		return nil, err
	}
	p.mem.reset()
	o := p.team.objects
	t := &pullTry{
		mem: p.mem, workers: len(here), pids: j.pids, self: uint32(os.Getpid()), latency: p.team.bpf.Latency,
		recordings: p.recordings, taskProg: o.RecordTask.FD(), idleProg: -1, recountProg: -1,
	}
	if o.RecordIdle != nil {
		t.idleProg = o.RecordIdle.FD()
	}
	if o.Recount != nil {
		t.recountProg = o.Recount.FD()
	}
	t.stopTaking = func() bool { return !t.state.recording() }
	for _, w := range here {
		p.recordings[w.slot].begin(p.mem, w.cluster, j.size.tasks)
	}
	t.try = p.team.newTry(j, here, new(stopWords), t)
	return t, t.openCensus(o.Census.FD())
}

// result reads what the workers left behind.
func (p *pull) result(t *pullTry, missing []*worker) (*captured, error) {
	c := &captured{
		engine: enginePull, isolation: p.team.level, seenTasks: t.seenTasks, seenThreads: t.seenThreads,
		ranShort: t.state.ranShort(), censusErr: t.censusErr, wholeCensus: t.pids != nil || t.censusWhole,
	}
	for _, w := range t.here {
		if !w.away { // else its memory is still its own
			w.did = p.recordings[w.slot].end(c)
		}
	}
	c.second = t.second()
	return c, p.team.describe(c, t.try, p.mem, missing)
}

func (p *pull) release() { p.team.release() }

// close gives everything back, but what a worker that is away may still write to.
func (p *pull) close() error {
	if !p.team.stopWorkers() {
		return nil
	}
	for _, m := range p.retired {
		m.free()
	}
	p.retired = nil
	if p.mem != nil {
		p.mem.free()
		p.mem = nil
	}
	return nil
}
