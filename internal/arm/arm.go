package arm

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/panicregion"
	"stackshot/internal/procfs"
	"stackshot/internal/resident"
	"stackshot/internal/topology"
)

// Armed is a machine that is armed. One goroutine uses it.
type Armed struct {
	Hooks    []bpf.Hook // what is attached, and why other hooks are not
	Wakes    bool       // a SysRq is answered by an ordinary capture: Event.Capture
	Threads  int        // for how many the region is made
	Warnings []string   // what a capture will lack, and why

	options Options
	lock    *os.File
	panic   *bpf.Panic
	watch   *watch
	topo    *topology.Topology
	layout  layout
	static  panicregion.Static
	looks   looks
	tally   Tally

	userStacks bool // are taken
}

// ErrNamespace says that this process sees only a part of the machine.
var ErrNamespace = errors.New("not in the machine's first pid namespace: the records would have numbers that nobody outside knows")

// Open arms the machine. Errors: *engine.OptionError, ErrNamespace, resident.ErrArmed, bpf.ErrUnsupported with the
// kernel's own reasons.
func Open(o Options) (*Armed, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	switch _, first, err := (procfs.FS{}).PidNamespace(); {
	case err != nil:
		return nil, fmt.Errorf("which pid namespace this is: %w", err)
	case !first:
		return nil, ErrNamespace
	}
	lock, err := resident.Take(cmp.Or(o.lockPath, resident.Path))
	if err != nil {
		return nil, err
	}
	a := &Armed{options: o, lock: lock}
	if err := a.open(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Armed) open() (err error) {
	if a.watch, err = openWatch(); err != nil {
		return err
	}
	if a.topo, err = topology.Machine(); err != nil {
		return err
	}
	people, err := count()
	if err != nil {
		return err
	}
	// What the machine is like is asked before it is described: a change in between is seen later.
	if a.looks.shape, err = a.watch.shape(); err != nil {
		return err
	}
	a.looks.epoch, a.looks.next = clock.BootEpoch(), time.Now().Add(lookEvery)
	d, cfg, err := a.prepare()
	if err != nil {
		return err
	}
	packed, err := d.Pack()
	if err != nil {
		return err
	}
	records, threads := a.options.records(people)
	a.Threads = threads
	a.layout = plan(len(packed), records)
	if err := a.load(cfg); err != nil {
		return err
	}
	if err := a.lookAtMask(); err != nil {
		return err
	}
	if a.Walks() {
		if err := a.writeRegion(d); err != nil {
			return err
		}
	}
	return a.sign()
}

// load loads and attaches the programs. If none of them records, they get no region.
func (a *Armed) load(cfg bpf.Config) (err error) {
	p := bpf.PanicConfig{
		At: a.layout.at, Records: a.layout.records, Pause: a.options.Pause, Key: a.options.Key,
		Sysrq: a.options.Sysrq, Panic: a.options.Panic,
	}
	if a.panic, err = bpf.LoadPanic(cfg, p); err != nil {
		return err
	}
	a.Hooks, a.Wakes = a.panic.Hooks, a.panic.Wakes
	if a.Walks() {
		return nil
	}
	p.At, p.Records = panicregion.PageSize, engine.MinBuffer
	a.layout, a.Threads = layout{at: p.At, records: p.Records}, 0
	if err = a.panic.Close(); err != nil {
		return err
	}
	if a.panic, err = bpf.LoadPanic(cfg, p); err == nil {
		a.Hooks, a.Wakes = a.panic.Hooks, a.panic.Wakes
	}
	return err
}

// Walks reports whether a program is attached that records.
func (a *Armed) Walks() bool {
	for _, h := range a.Hooks {
		if h.Err == nil && (h.Event != bpf.EventSysrq || !a.Wakes) {
			return true
		}
	}
	return false
}

// Bytes is the size of the region; 0: there is none.
func (a *Armed) Bytes() int {
	if !a.Walks() {
		return 0
	}
	return a.layout.bytes()
}

// sign writes into the lock what captures need.
func (a *Armed) sign() error {
	info, err := a.panic.Live.Info()
	if err != nil {
		return fmt.Errorf("map panic_live: %w", err)
	}
	id, _ := info.ID()
	return resident.Sign(a.lock, resident.Holder{Pid: os.Getpid(), Since: time.Now(), Live: uint32(id), Region: a.static.Region})
}

// Close detaches the programs and frees the memory.
func (a *Armed) Close() error {
	var errs []error
	if a.panic != nil {
		errs = append(errs, a.panic.Close())
		a.panic = nil
	}
	if a.watch != nil {
		a.watch.close()
		a.watch = nil
	}
	if a.lock != nil {
		errs = append(errs, resident.Drop(a.lock))
		a.lock = nil
	}
	return errors.Join(errs...)
}

// Tally counts what came since Open.
type Tally struct {
	Captures uint64 // regions that Next returned
	Nested   uint64 // requests that found the region taken
	Refused  uint64 // keys of a keyboard or serial line that kernel.sysrq refused
}

// Tally gives the counts so far.
func (a *Armed) Tally() Tally {
	t := a.tally
	if a.panic != nil {
		t.Nested, t.Refused = atomic.LoadUint64(&a.panic.Run.Nested), atomic.LoadUint64(&a.panic.Ask.Refused)
	}
	return t
}

// since is the time from which a region's number counts.
func since() uint64 { return clock.Now().Boottime }
