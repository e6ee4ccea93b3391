package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"stackshot/internal/bpf"
	"stackshot/internal/topology"
)

// trap is the engine in which a BPF program on every CPU holds the machine and
// records. The workers are those of pull; all that a worker does in the window
// is one read(2) of its own iterator.
type trap struct {
	*pull
	loaded *bpf.Trap
	level  string
	split  uint32
	lent   []*bpf.Trap // replaced, still in the hands of workers that are away
}

// A CPU with its interrupts off waits this long for the others. Constant but
// for tests on an emulated machine.
var holdBudget = 200 * time.Microsecond

const (
	// Threads of one part of a task: a few hundred microseconds of work.
	splitThreads = 64

	trapChunk = 64 << 10

	firstTrapBytes = 8 << 20
	firstTrapItems = 4096
)

func newTrap(o Options, plan *topology.Plan, h hooks) (*trap, error) {
	p, err := newPull(o, plan, h)
	if err != nil {
		return nil, err
	}
	e, err := trapOver(p)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return e, nil
}

// trapOver puts the trap over a pull; with an error that is as it was.
func trapOver(p *pull) (*trap, error) {
	if p.objects.Control.NsLevel != 0 {
		return nil, fmt.Errorf("%w: tasks are found by the numbers of the first pid namespace", bpf.ErrUnsupported)
	}
	if err := p.team.hooks.checkSource(); err != nil {
		return nil, err
	}
	e := &trap{pull: p, split: splitThreads}
	t := p.plan.Topology
	bytes := p.options.Buffer
	if bytes == 0 {
		bytes = min(firstTrapBytes, p.options.MaxBuffer)
	}
	if err := e.load(size{bytes: bytes, tasks: firstTrapItems, clusters: len(t.Clusters), amp: t.AMP}); err != nil {
		p.mem = nil // it lay in the trap's map
		if e.loaded != nil {
			err = errors.Join(err, e.loaded.Close())
		}
		return nil, lacking(err)
	}
	e.level = e.levelOf(e.loaded.Level())
	return e, nil
}

func (e *trap) name() string      { return EngineTrap }
func (e *trap) isolation() string { return e.level }

// load puts a trap with memory for s in place of the one there is.
func (e *trap) load(s size) error {
	loaded, err := e.objects.LoadTrap(bpf.TrapConfig{Bytes: roundUp(int(s.bytes), 4096), Items: s.tasks})
	if err != nil {
		return err
	}
	if e.loaded != nil {
		e.lent = append(e.lent, e.loaded)
	}
	e.loaded = loaded
	if !anyAway(e.workers) {
		e.closeLent()
	}
	e.mem = &memory{data: loaded.Region, ctl: loaded.Arenas, queues: loaded.Queue, chunk: s.chunk, amp: s.amp, mapped: true, locked: true}
	return e.mem.format(s)
}

// prepare has the program loaded with memory for tries of this size; the
// kernel neither swaps nor reclaims what a map holds.
func (e *trap) prepare(sz size) error {
	if sz = e.mem.atLeast(sz); e.mem.fits(sz) && !e.inUse() {
		return nil
	}
	return e.load(sz)
}

// inUse reports whether a worker that is away may still come to its turn in what
// is loaded: its words are left to it.
func (e *trap) inUse() bool {
	return slices.ContainsFunc(e.workers, func(w *worker) bool { return w.away && w.try.trap == e.loaded })
}

func (e *trap) capture(ctx context.Context, j job) (*captured, error) {
	team, away := e.present()
	if len(team) == 0 {
		return nil, errNobodyLeft
	}
	if len(j.pids) > bpf.MaxAsked {
		return nil, &OptionError{"pid", fmt.Sprint(len(j.pids), " tasks"), fmt.Sprint("engine trap takes at most ", bpf.MaxAsked)}
	}
	if err := e.team.hooks.checkSource(); err != nil {
		return nil, err
	}
	if err := e.prepare(j.size); err != nil {
		return nil, err
	}
	j.size = e.mem.atLeast(j.size)
	t, err := e.prepareTrap(j, team)
	if err != nil {
		return nil, err
	}
	e.team.hooks.reach(stagePrepare)
	missing, err := e.stop(ctx, t, team)
	e.loaded.KeepAlive()
	closePasses(e.workers)
	if err != nil {
		return nil, err
	}
	return e.trapResult(t, team, append(missing, away...))
}

// prepareTrap writes down what the program needs to know and opens each
// worker's way into it.
func (e *trap) prepareTrap(j job, team []*worker) (*try, error) {
	t := e.newTry(j, team)
	t.trap = e.loaded
	s := e.loaded.Stop
	*s = bpf.Stop{
		ArriveNs: uint64(t.arrivalBudget), PauseNs: uint64(t.pauseBudget), HoldNs: uint64(holdBudget),
		Chunk: e.chunk(len(team)), Split: e.split, Asked: uint32(len(j.pids)),
	}
	t.stopWords = (*stopWords)(unsafe.Pointer(s))
	for i, p := range j.pids {
		e.loaded.Asked[i] = uint64(p.Tgid)
	}
	clear(e.loaded.Workers)
	clear(e.loaded.Parts)
	clear(e.loaded.Traces)
	closePasses(team) // of those that have come back only now
	for i, w := range team {
		k := &e.loaded.Workers[w.cpu]
		k.Tid, k.Kind, k.Cluster, k.Slot = uint32(w.tid), uint32(w.kind), uint32(w.cluster), uint32(w.slot)
		k.Main, k.Works = flag(i == 0), flag(w.works)
		scope := bpf.ThreadScope(uint32(w.tid))
		if errno := w.pass.Open(e.loaded.Program.FD(), &scope); errno != 0 {
			closePasses(team)
			return nil, &captureError{"open the iterator of the trap", errno}
		}
		w.passed = true
	}
	if h := e.team.hooks.trapReady; h != nil {
		h(e.loaded)
	}
	return t, nil
}

// chunk is what a worker takes at once. A chunk is left when there may be too
// little room for one more thread, some 2 KiB: large chunks leave less behind.
func (e *trap) chunk(workers int) uint32 {
	return uint32(min(trapChunk, max(minChunk, roundUp(len(e.mem.data)/(8*workers), 4096))))
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// closePasses closes the iterators, but of workers that may still read theirs:
// the number of a closed file can come to mean another.
func closePasses(team []*worker) {
	for _, w := range team {
		if !w.away && w.passed {
			w.pass.Close()
			w.passed = false
		}
	}
}

// enterTrap is a worker's whole part in the window. The program writes nothing
// to the file; the read returns when the machine is released.
func (w *worker) enterTrap(t *try) {
	var none [16]byte
	w.pass.Read(none[:])
	k := &t.trap.Workers[w.cpu]
	s := &w.stamp
	s.arrived, s.decided, s.window, s.census, s.drained = k.Arrived, k.Decided, k.Held, k.CensusNs, k.Drained
	s.checked, s.verified, s.released = k.Checked, k.Verified, k.Left
	s.in = k.In != 0
	s.switches = k.Broken
	if s.left = nanotime(); w.switched() != k.Switched && k.Left != 0 {
		s.left = k.Left // it was taken off its CPU since, by a SIGSTOP for one
	}
}

func (e *trap) close() error {
	if !e.dismiss() {
		return nil
	}
	for _, w := range e.workers {
		w.away = false
	}
	closePasses(e.workers)
	if e.loaded != nil {
		e.lent = append(e.lent, e.loaded)
	}
	return errors.Join(e.closeLent(), e.pull.close())
}

func (e *trap) closeLent() (err error) {
	for _, l := range e.lent {
		err = errors.Join(err, l.Close())
	}
	e.lent = nil
	return err
}
