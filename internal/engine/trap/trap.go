package trap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
)

// Engine is engine trap: a BPF program on every CPU holds the machine and records. All
// that a worker does in the window is one read(2) of its own iterator.
type Engine struct {
	Team    *stop.Team
	Mem     *engine.Memory // lies in the loaded program's maps
	Loaded  *bpf.Trap
	level   string // isolation that this machine offers
	Split   uint32
	Retired []*bpf.Trap // replaced, still in the hands of workers that are away
	passes  []*entry    // by a worker's slot

	// Stopping, if not nil, is told before each stop which trap it will use. The
	// coordinator calls it, with the machine's lock.
	Stopping func(*bpf.Trap)
}

// entry is a worker's way into the trap.
type entry struct {
	bpf.Iterator
	open bool
}

// HoldBudget is how long a CPU with its interrupts off waits for the others. Only tests on
// an emulated machine change it.
var HoldBudget = 200 * time.Microsecond

const (
	// Threads of one part of a task: a few hundred microseconds of work.
	splitThreads = 64

	trapChunk = 64 << 10

	firstTrapBytes = 8 << 20
	firstTrapItems = 4096
)

// New is an engine over a team. With an error the team is as it was.
func New(m *stop.Team) (*Engine, error) {
	if m.Objects.Control.NsLevel != 0 {
		return nil, fmt.Errorf("%w: tasks are found by the numbers of the first pid namespace", bpf.ErrUnsupported)
	}
	if err := CheckSource(&m.Hooks); err != nil {
		return nil, err
	}
	e := &Engine{Team: m, Split: splitThreads}
	for range m.Workers {
		e.passes = append(e.passes, new(entry))
	}
	bytes := m.Buffer
	if bytes == 0 {
		bytes = min(firstTrapBytes, m.MaxBuffer)
	}
	t := m.Plan.Topology
	if err := e.Load(engine.Size{Bytes: bytes, Tasks: firstTrapItems, Clusters: len(t.Clusters), AMP: t.AMP}); err != nil {
		if e.Loaded != nil {
			err = errors.Join(err, e.Loaded.Close())
		}
		return nil, lacking(err)
	}
	e.level = e.levelOf(e.Loaded.Level())
	return e, nil
}

// lacking replaces an error by the name of the feature that the kernel lacks, if it lacks
// one.
func lacking(err error) error {
	if p, lacks := bpf.FirstMissing(bpf.NeedTrap); lacks {
		return fmt.Errorf("%w: %v", bpf.ErrUnsupported, p)
	}
	return err
}

// levelOf gives the isolation for what is off (bits of bpf.TrapWorker.Level). If
// nothing is off, the workers' priority alone holds the machine.
func (e *Engine) levelOf(off uint32) string {
	switch {
	case off&bpf.InterruptsOff != 0:
		return capture.IRQOff
	case off&bpf.PreemptionOff != 0:
		return capture.PreemptOff
	}
	return e.Team.Level
}

func (e *Engine) Caps() engine.Caps { return e.Team.Caps(capture.Trap, e.level) }

// Load replaces the loaded trap by one with memory for s.
func (e *Engine) Load(s engine.Size) error {
	loaded, err := e.Team.Objects.LoadTrap(bpf.TrapConfig{Bytes: engine.RoundUp(int(s.Bytes), 4096), Items: s.Tasks})
	if err != nil {
		return err
	}
	if e.Loaded != nil {
		e.Retired = append(e.Retired, e.Loaded)
	}
	e.Loaded = loaded
	if !e.Team.AnyAway() {
		e.closeRetired()
	}
	e.Mem = &engine.Memory{Data: loaded.Region, Ctl: loaded.Arenas, Queues: loaded.Queue, Chunk: s.Chunk, AMP: s.AMP, Mapped: true, Locked: true}
	return e.Mem.Format(s)
}

// Prepare makes sure that the loaded program has memory for tries of this size. The
// kernel neither swaps nor reclaims the memory of a map.
func (e *Engine) Prepare(sz engine.Size) error {
	if sz = e.Mem.AtLeast(sz); e.Mem.Fits(sz) && !e.inUse() {
		return nil
	}
	return e.Load(sz)
}

// inUse reports whether a worker that is away may still come to its turn in the loaded
// program. Then its words are not reused.
func (e *Engine) inUse() bool {
	return slices.ContainsFunc(e.Team.Workers, func(w *stop.Worker) bool {
		t, ours := w.Recorder().(*Try)
		return w.Away && ours && t.loaded == e.Loaded
	})
}

func (e *Engine) Capture(ctx context.Context, j engine.Job) (*capture.Raw, error) {
	here, away := e.Team.Present()
	if len(here) == 0 {
		return nil, engine.ErrNobodyLeft
	}
	if len(j.Pids) > bpf.MaxAsked {
		return nil, &engine.OptionError{Option: "pid", Value: fmt.Sprint(len(j.Pids), " tasks"), Reason: fmt.Sprint("engine trap takes at most ", bpf.MaxAsked)}
	}
	if err := CheckSource(&e.Team.Hooks); err != nil {
		return nil, err
	}
	if err := e.Prepare(j.Size); err != nil {
		return nil, err
	}
	if e.Stopping != nil {
		e.Stopping(e.Loaded)
	}
	t, err := e.PrepareTry(j, here)
	if err != nil {
		return nil, err
	}
	missing, err := e.Team.Stop(ctx, t.Try)
	e.Loaded.KeepAlive()
	e.closePasses(e.Team.Workers)
	if err != nil {
		return nil, err
	}
	return e.result(t, append(missing, away...))
}

// Try is what engine trap does in one try.
type Try struct {
	*stop.Try
	loaded *bpf.Trap
	passes []*entry
	self   uint32
}

// PrepareTry writes down what the program needs to know and opens each
// worker's way into it. Errors: engine.ErrPanics too.
func (e *Engine) PrepareTry(j engine.Job, here []*stop.Worker) (*Try, error) {
	s := e.Loaded.Stop
	if stop.PhaseOf(atomic.LoadUint64(&s.Word)) == stop.PhasePanicked {
		return nil, engine.ErrPanics
	}
	e.Mem.Reset()
	*s = bpf.Stop{
		ArriveNs: uint64(min(e.Team.ArrivalBudget, j.Pause)), PauseNs: uint64(j.Pause), HoldNs: uint64(HoldBudget),
		Chunk: e.chunk(len(here)), Split: e.Split, Asked: uint32(len(j.Pids)),
	}
	t := &Try{loaded: e.Loaded, passes: e.passes, self: uint32(os.Getpid())}
	t.Try = e.Team.NewTry(j, here, (*stop.Words)(unsafe.Pointer(s)), t)
	for i, p := range j.Pids {
		e.Loaded.Asked[i] = uint64(p.Tgid)
	}
	clear(e.Loaded.Workers)
	clear(e.Loaded.Parts)
	clear(e.Loaded.Traces)
	e.closePasses(here) // of those that have come back only now
	for i, w := range here {
		k := &e.Loaded.Workers[w.CPU]
		k.Tid, k.Kind, k.Cluster, k.Slot = uint32(w.Tid), uint32(w.Kind), uint32(w.Cluster), uint32(w.Slot)
		k.Main, k.Works = bpf.Flag(i == 0), bpf.Flag(w.Works)
		scope := bpf.ThreadScope(uint32(w.Tid))
		if errno := e.passes[w.Slot].Open(e.Loaded.Program.FD(), &scope); errno != 0 {
			e.closePasses(here)
			return nil, fmt.Errorf("open the iterator of the trap: %w", errno)
		}
		e.passes[w.Slot].open = true
	}
	if h := e.Team.Hooks.TrapReady; h != nil {
		h(e.Loaded)
	}
	return t, nil
}

// chunk is how many bytes a worker takes from an arena at once. A worker leaves a chunk
// when one more thread might not fit, some 2 KiB. So large chunks waste less.
func (e *Engine) chunk(workers int) uint32 {
	return uint32(min(trapChunk, max(engine.MinChunk, engine.RoundUp(len(e.Mem.Data)/(8*workers), 4096))))
}

// closePasses closes the workers' iterators, except those that a worker may still read:
// the kernel may give the number of a closed file to another one.
func (e *Engine) closePasses(workers []*stop.Worker) {
	for _, w := range workers {
		if p := e.passes[w.Slot]; !w.Away && p.open {
			p.Close()
			p.open = false
		}
	}
}

// Hold enters the trap. The program writes nothing to the file; the read returns
// when the machine is released.
func (t *Try) Hold(w *stop.Worker) {
	var none [16]byte
	t.passes[w.Slot].Read(none[:])
	k := &t.loaded.Workers[w.CPU]
	s := &w.Stamp
	s.Arrived, s.Decided, s.Window = int64(k.Arrived), int64(k.Decided), int64(k.Held)
	s.Census, s.Drained, s.Checked = int64(k.CensusNs), int64(k.Drained), int64(k.Checked)
	s.Verified, s.Released = int64(k.Verified), int64(k.Left)
	s.In = k.In != 0
	s.Switches = k.Broken
	if s.Left = clock.Nanotime(); w.Switched() != k.Switched && k.Left != 0 {
		s.Left = s.Released // something, such as SIGSTOP, has taken it off its CPU since
	}
}

func (e *Engine) Release() { e.Team.Release() }

func (e *Engine) Close() error {
	if !e.Team.StopWorkers() {
		return nil
	}
	for _, w := range e.Team.Workers {
		w.Away = false
	}
	e.closePasses(e.Team.Workers)
	if e.Loaded != nil {
		e.Retired = append(e.Retired, e.Loaded)
	}
	return e.closeRetired()
}

func (e *Engine) closeRetired() (err error) {
	for _, l := range e.Retired {
		err = errors.Join(err, l.Close())
	}
	e.Retired = nil
	return err
}
