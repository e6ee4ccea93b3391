package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
	"unsafe"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
)

// trap is the engine in which a BPF program on every CPU holds the machine and
// records. All that a worker does in the window is one read(2) of its own iterator.
type trap struct {
	team    *team
	mem     *memory // lies in the loaded program's maps
	loaded  *bpf.Trap
	level   string // isolation that this machine offers
	split   uint32
	retired []*bpf.Trap // replaced, still in the hands of workers that are away
	passes  []*entry    // by a worker's slot
}

// entry is a worker's way into the trap.
type entry struct {
	bpf.Iterator
	open bool
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

// newTrap is an engine over a team. With an error the team is as it was.
func newTrap(m *team) (*trap, error) {
	if m.objects.Control.NsLevel != 0 {
		return nil, fmt.Errorf("%w: tasks are found by the numbers of the first pid namespace", bpf.ErrUnsupported)
	}
	if err := checkSource(&m.hooks); err != nil {
		return nil, err
	}
	e := &trap{team: m, split: splitThreads}
	for range m.workers {
		e.passes = append(e.passes, new(entry))
	}
	bytes := m.buffer
	if bytes == 0 {
		bytes = min(firstTrapBytes, m.maxBuffer)
	}
	t := m.plan.Topology
	if err := e.load(size{bytes: bytes, tasks: firstTrapItems, clusters: len(t.Clusters), amp: t.AMP}); err != nil {
		if e.loaded != nil {
			err = errors.Join(err, e.loaded.Close())
		}
		return nil, lacking(err)
	}
	e.level = e.levelOf(e.loaded.Level())
	return e, nil
}

// lacking names what the kernel lacks for the trap, where that is why.
func lacking(err error) error {
	if p, lacks := bpf.Lacks(bpf.NeedTrap); lacks {
		return fmt.Errorf("%w: %v", bpf.ErrUnsupported, p)
	}
	return err
}

// levelOf names what is off, in bits of bpf.TrapWorker.Level; where nothing
// is, the workers' priority is what holds the machine.
func (e *trap) levelOf(off uint32) string {
	switch {
	case off&bpf.InterruptsOff != 0:
		return isolationIRQOff
	case off&bpf.PreemptionOff != 0:
		return isolationPreemptOff
	}
	return e.team.level
}

// caps. Without SCHED_FIFO a worker may wait for its CPU like any thread. Once there
// it holds it all the same, where the kernel can turn preemption off.
func (e *trap) caps() caps {
	m := e.team
	c := caps{name: engineTrap, isolation: e.level, stops: true, userStacks: m.userWhy == nil, objects: m.objects, warnings: m.lacks()}
	switch why := m.fifoRefused(); {
	case why == nil:
	case e.level == isolationNone:
		c.warnings = append(c.warnings, isolationNoneWarning(why))
	default:
		c.warnings = append(c.warnings, kcdata.Warning{
			Code: "fifo_refused", Text: "a busy CPU may come late to the stop and be left out: " + why.Error(),
		})
	}
	return c
}

// load puts a trap with memory for s in place of the one there is.
func (e *trap) load(s size) error {
	loaded, err := e.team.objects.LoadTrap(bpf.TrapConfig{Bytes: roundUp(int(s.bytes), 4096), Items: s.tasks})
	if err != nil {
		return err
	}
	if e.loaded != nil {
		e.retired = append(e.retired, e.loaded)
	}
	e.loaded = loaded
	if !e.team.anyAway() {
		e.closeRetired()
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
	return slices.ContainsFunc(e.team.workers, func(w *worker) bool {
		t, ours := w.recorder().(*trapTry)
		return w.away && ours && t.loaded == e.loaded
	})
}

func (e *trap) capture(ctx context.Context, j job) (*captured, error) {
	here, away := e.team.present()
	if len(here) == 0 {
		return nil, errNobodyLeft
	}
	if len(j.pids) > bpf.MaxAsked {
		return nil, &OptionError{"pid", fmt.Sprint(len(j.pids), " tasks"), fmt.Sprint("engine trap takes at most ", bpf.MaxAsked)}
	}
	if err := checkSource(&e.team.hooks); err != nil {
		return nil, err
	}
	if err := e.prepare(j.size); err != nil {
		return nil, err
	}
	t, err := e.prepareTry(j, here)
	if err != nil {
		return nil, err
	}
	e.team.hooks.reach(stagePrepare)
	missing, err := e.team.stop(ctx, t.try)
	e.loaded.KeepAlive()
	e.closePasses(e.team.workers)
	if err != nil {
		return nil, err
	}
	return e.result(t, append(missing, away...))
}

// trapTry is what engine trap does in one try.
type trapTry struct {
	*try
	loaded *bpf.Trap
	passes []*entry
	self   uint32
}

// prepareTry writes down what the program needs to know and opens each
// worker's way into it.
func (e *trap) prepareTry(j job, here []*worker) (*trapTry, error) {
	e.mem.reset()
	s := e.loaded.Stop
	*s = bpf.Stop{
		ArriveNs: uint64(min(e.team.arrivalBudget, j.pause)), PauseNs: uint64(j.pause), HoldNs: uint64(holdBudget),
		Chunk: e.chunk(len(here)), Split: e.split, Asked: uint32(len(j.pids)),
	}
	t := &trapTry{loaded: e.loaded, passes: e.passes, self: uint32(os.Getpid())}
	t.try = e.team.newTry(j, here, (*stopWords)(unsafe.Pointer(s)), t)
	for i, p := range j.pids {
		e.loaded.Asked[i] = uint64(p.Tgid)
	}
	clear(e.loaded.Workers)
	clear(e.loaded.Parts)
	clear(e.loaded.Traces)
	e.closePasses(here) // of those that have come back only now
	for i, w := range here {
		k := &e.loaded.Workers[w.cpu]
		k.Tid, k.Kind, k.Cluster, k.Slot = uint32(w.tid), uint32(w.kind), uint32(w.cluster), uint32(w.slot)
		k.Main, k.Works = flag(i == 0), flag(w.works)
		scope := bpf.ThreadScope(uint32(w.tid))
		if errno := e.passes[w.slot].Open(e.loaded.Program.FD(), &scope); errno != 0 {
			e.closePasses(here)
			return nil, &captureError{"open the iterator of the trap", errno}
		}
		e.passes[w.slot].open = true
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
func (e *trap) closePasses(workers []*worker) {
	for _, w := range workers {
		if p := e.passes[w.slot]; !w.away && p.open {
			p.Close()
			p.open = false
		}
	}
}

// hold enters the trap. The program writes nothing to the file; the read returns
// when the machine is released.
func (t *trapTry) hold(w *worker) {
	var none [16]byte
	t.passes[w.slot].Read(none[:])
	k := &t.loaded.Workers[w.cpu]
	s := &w.stamp
	s.arrived, s.decided, s.window, s.census, s.drained = k.Arrived, k.Decided, k.Held, k.CensusNs, k.Drained
	s.checked, s.verified, s.released = k.Checked, k.Verified, k.Left
	s.in = k.In != 0
	s.switches = k.Broken
	if s.left = nanotime(); w.switched() != k.Switched && k.Left != 0 {
		s.left = k.Left // it was taken off its CPU since, by a SIGSTOP for one
	}
}

func (e *trap) release() { e.team.release() }

func (e *trap) close() error {
	if !e.team.stopWorkers() {
		return nil
	}
	for _, w := range e.team.workers {
		w.away = false
	}
	e.closePasses(e.team.workers)
	if e.loaded != nil {
		e.retired = append(e.retired, e.loaded)
	}
	return e.closeRetired()
}

func (e *trap) closeRetired() (err error) {
	for _, l := range e.retired {
		err = errors.Join(err, l.Close())
	}
	e.retired = nil
	return err
}
