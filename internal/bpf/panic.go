package bpf

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// The structures of the panic programs (panic.h says what each field is and who may write it).
type (
	PanicRun = panicObjectPanicRun // one walk, at PanicRunAt of the region
	PanicAsk = panicObjectPanicAsk // words for the hook of the SysRq
)

// PanicRunAt is where PanicRun stands in the first page of the region.
const PanicRunAt = 2048

// States of a PanicRun (panic.h, enum panic_state).
const (
	PanicFree  = 0
	PanicTaken = 1 // a walk has the region
	PanicDone  = 2 // a SysRq's walk is over: the process saves it and frees the region
	PanicLeft  = 3 // a panic's walk is over: final
)

// PanicConfig is fixed when the panic programs are loaded.
type PanicConfig struct {
	At      int           // where the records begin in the region: behind the head and all that Go writes
	Records int           // bytes for them
	Pause   time.Duration // for one walk
	Key     byte          // the SysRq that asks for a capture
	Sysrq   bool          // attach to it
	Panic   bool          // attach to the panic
}

// Panic is the panic programs, attached, and their memory.
type Panic struct {
	Region  []byte // the head, what Go writes, the records
	Run     *PanicRun
	Ask     *PanicAsk
	Control *Control
	Live    *ebpf.Map // stops of captures that a panic ends (panic.h, panic_live)
	Hooks   []Hook    // those that are attached, and why others are not
	Wakes   bool      // a SysRq only wakes this process: the kernel lets no program walk the tasks

	WaitSources uint32 // kcdata.WaitHas*, as in Objects
	FileSources uint32 // kcdata.FilesHas*, likewise

	coll   *ebpf.Collection
	mapped mappings
	rings  *ringbuf.Reader
}

// Hook is one place of the kernel that the panic programs are for.
type Hook struct {
	Event    string // EventSysrq and so on
	Function string // of the kernel: the last one tried
	By       string // "fentry" or "kprobe"
	Err      error  // nil: attached; else why not, in the kernel's words
	Load     time.Duration
	Verified uint32 // instructions; 0: not known

	link link.Link
	prog *ebpf.Program
}

// Events that a hook is for.
const (
	EventSysrq = "sysrq"
	EventPanic = "panic"
	EventCrash = "crash" // an oops with a crash kernel loaded, which does not come to panic()
)

// way is one way to hook an event.
type way struct {
	program, function, by string
	wakes                 bool
}

// ways are tried in their order until one loads and attaches.
var ways = map[string][]way{
	EventSysrq: {
		{program: "on_sysrq", function: "__handle_sysrq", by: "fentry"},
		{program: "on_sysrq_kprobe", function: "__handle_sysrq", by: "kprobe"},
		{program: "on_sysrq_wake", function: "__handle_sysrq", by: "fentry", wakes: true},
	},
	EventPanic: {
		{program: "on_vpanic", function: "vpanic", by: "fentry"},
		{program: "on_vpanic_kprobe", function: "vpanic", by: "kprobe"},
		{program: "on_panic", function: "panic", by: "kprobe"},
	},
	EventCrash: {
		{program: "on_crash", function: "crash_kexec", by: "fentry"},
		{program: "on_crash_kprobe", function: "crash_kexec", by: "kprobe"},
	},
}

// LoadPanic loads the panic programs and attaches them. An error of kind ErrUnsupported says
// that no hook could be attached, with the kernel's own reasons.
func LoadPanic(cfg Config, p PanicConfig) (*Panic, error) {
	x, err := openPanic(cfg, p)
	if err != nil {
		return nil, err
	}
	if why := x.refused(); why != nil {
		return nil, errors.Join(why, x.Close())
	}
	return x, nil
}

// TryPanic attaches the panic programs for a moment, and says which hooks the kernel takes. wakes
// is Panic.Wakes.
func TryPanic(cfg Config, p PanicConfig) (hooks []Hook, wakes bool, err error) {
	x, err := openPanic(cfg, p)
	if err != nil {
		return nil, false, err
	}
	hooks, wakes = x.Hooks, x.Wakes
	return hooks, wakes, x.Close()
}

func openPanic(cfg Config, p PanicConfig) (*Panic, error) {
	spec, err := loadPanicObject()
	if err != nil {
		return nil, fmt.Errorf("committed object: %w", err)
	}
	if err := configurePanic(spec, cfg, p); err != nil {
		return nil, err
	}
	types, err := kernelTypes()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	x := &Panic{WaitSources: cfg.Waits.sources(types), FileSources: cfg.Waits.fileSources(types)}
	if err := x.makeMaps(spec); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrUnsupported, rights(err)), x.Close())
	}
	if p.Sysrq {
		x.hook(spec, EventSysrq)
	}
	if p.Panic {
		x.hook(spec, EventPanic)
		x.hook(spec, EventCrash)
	}
	return x, nil
}

func configurePanic(spec *ebpf.CollectionSpec, cfg Config, p PanicConfig) error {
	cfg.Latency = 0
	if err := configure(spec, cfg); err != nil {
		return err
	}
	bytes := p.At + p.Records
	spec.Maps["region"].ValueSize = uint32(bytes) + regionSlack
	spec.Maps["panic_cpus"].MaxEntries = uint32(cfg.CPUs)
	return setValues(spec, map[string]any{
		"cfg_region_bytes": uint32(bytes), "cfg_records_at": uint32(p.At), "cfg_panic_pause": uint64(p.Pause),
		"cfg_panic_cpus": uint32(cfg.CPUs), "cfg_sysrq_key": uint32(p.Key),
	})
}

// makeMaps makes the maps, which all programs share, and maps them into memory.
func (x *Panic) makeMaps(spec *ebpf.CollectionSpec) (err error) {
	maps := spec.Copy()
	clear(maps.Programs)
	if x.coll, err = newCollection(maps, nil); err != nil {
		return err
	}
	mem, err := mapAll(x.coll, "region", "panic_asks", "controls")
	if err != nil {
		return err
	}
	x.mapped = mem
	x.Region = mem["region"]
	x.Run = (*PanicRun)(unsafe.Pointer(&x.Region[PanicRunAt]))
	x.Ask = (*PanicAsk)(unsafe.Pointer(&mem["panic_asks"][0]))
	x.Control = (*Control)(unsafe.Pointer(&mem["controls"][0]))
	x.Live = x.coll.Maps["panic_live"]
	x.rings, err = ringbuf.NewReader(x.coll.Maps["panic_rings"])
	return err
}

// hook attaches an event's first way that the kernel takes.
func (x *Panic) hook(spec *ebpf.CollectionSpec, event string) {
	var whys []error
	for _, w := range ways[event] {
		h := Hook{Event: event, Function: w.function, By: w.by}
		if h.Err = x.attach(spec, w, &h); h.Err == nil {
			x.Wakes = x.Wakes || w.wakes
			x.Hooks = append(x.Hooks, h)
			return
		}
		whys = append(whys, fmt.Errorf("%s/%s: %w", w.by, w.function, h.Err))
	}
	last := ways[event][len(ways[event])-1]
	x.Hooks = append(x.Hooks, Hook{Event: event, Function: last.function, By: last.by, Err: errors.Join(whys...)})
}

func (x *Panic) attach(spec *ebpf.CollectionSpec, w way, h *Hook) error {
	one := spec.Copy()
	for name := range one.Programs {
		if name != w.program {
			delete(one.Programs, name)
		}
	}
	began := time.Now()
	coll, err := newCollection(one, x.coll.Maps)
	if errors.Is(err, unix.EPERM) { // of a kernel without fentry, too
		return fmt.Errorf("load the program: %w (CAP_BPF or CAP_PERFMON is missing, lockdown of confidentiality is on, or this kernel has no hook here)", unix.EPERM)
	}
	if err != nil {
		return err
	}
	h.Load = time.Since(began)
	h.prog = coll.DetachProgram(w.program)
	coll.Close()
	if info, err := h.prog.Info(); err == nil {
		h.Verified, _ = info.VerifiedInstructions()
	}
	if w.by == "kprobe" {
		h.link, err = link.Kprobe(w.function, h.prog, nil)
	} else {
		h.link, err = link.AttachTracing(link.TracingOptions{Program: h.prog})
	}
	if err != nil {
		h.prog.Close()
	}
	return err
}

// refused is why no hook is attached; nil: one is.
func (x *Panic) refused() error {
	var whys []error
	for _, h := range x.Hooks {
		if h.Err == nil {
			return nil
		}
		whys = append(whys, h.Err)
	}
	return fmt.Errorf("%w: %w", ErrUnsupported, errors.Join(whys...))
}

// Await waits until a SysRq has come, or until Interrupt or Close: then it returns
// ErrInterrupted or the reader's error.
func (x *Panic) Await() error {
	_, err := x.rings.Read()
	return err
}

// AwaitUntil is Await with a deadline: os.ErrDeadlineExceeded when it passes. The zero time is none.
func (x *Panic) AwaitUntil(t time.Time) error {
	x.rings.SetDeadline(t)
	return x.Await()
}

// ErrInterrupted is what Await returns after Interrupt.
var ErrInterrupted = ringbuf.ErrFlushed

// Interrupt has Await return ErrInterrupted, or the next call of it. It may be called beside Await.
func (x *Panic) Interrupt() error { return x.rings.Flush() }

// Close detaches the programs and frees the memory.
func (x *Panic) Close() (err error) {
	if x.rings != nil {
		err = x.rings.Close()
	}
	for _, h := range x.Hooks {
		if h.link != nil {
			err = errors.Join(err, h.link.Close())
		}
		if h.prog != nil {
			err = errors.Join(err, h.prog.Close())
		}
	}
	err = errors.Join(err, x.mapped.unmap())
	if x.coll != nil {
		x.coll.Close()
	}
	*x = Panic{}
	return err
}
