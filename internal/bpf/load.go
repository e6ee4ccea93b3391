package bpf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Config is fixed when the programs are loaded.
type Config struct {
	CPUs     int    // slots: possible CPUs
	SelfTgid uint32 // the snapshotter's own, in its own pid namespace
	Redact   bool   // leave out register and argument values
	Latency  int    // 0: nothing is timed; 1: tasks (by the trap); 2: threads too
	User     UserStacks
	Waits    Waits
	Specs    Specs // nil: the committed objects; tests have objects of their own
}

// Specs gives the BPF objects to load, each time anew: the caller changes them.
type Specs interface {
	Pull() (*ebpf.CollectionSpec, error)
	Trap() (*ebpf.CollectionSpec, error)
}

// committed are the objects of this package, for this architecture.
type committed struct{}

func (committed) Pull() (*ebpf.CollectionSpec, error) { return loadObject() }
func (committed) Trap() (*ebpf.CollectionSpec, error) { return loadTrapObject() }

func (c Config) specs() Specs { return cmp.Or[Specs](c.Specs, committed{}) }

// MaxFrames bounds a kernel stack (shared.h, MAX_FRAMES).
const MaxFrames = 1000

// ErrUnsupported says that this kernel cannot run the programs; errors.Is
// finds it under every refusal of the loader.
var ErrUnsupported = errors.New("BPF recording is not available")

// Objects are the programs and maps that all engines share. Programs that the running
// kernel cannot have are nil, with the reason in Missing; Census is there. Close it after
// the last capture; raw file descriptors of its programs are valid only until then, so keep
// the Objects reachable while they are in use.
type Objects struct {
	Census, OnSwitch, Sample *ebpf.Program

	Control *Control
	Slots   Slots
	Samples Samples
	Missing []Missing

	// WaitSources are the kcdata.WaitHas* bits of this kernel, as far as the configuration
	// uses them; 0: waits are not recorded.
	WaitSources uint32

	// FileSources are the kcdata.FilesHas* bits of what the window tells of open files, likewise.
	FileSources uint32

	coll   *ebpf.Collection
	mapped mappings
	config Config
}

// Missing is a program that was left out and why.
type Missing struct {
	Program string
	Why     error
}

// Load loads what all engines share. Errors are of kind ErrUnsupported and contain the
// kernel's own reason.
func Load(cfg Config) (*Objects, error) { return cfg.objects("census", "on_switch", "sample") }

// LoadSampler loads only what samples CPUs, for when nothing is stopped: the
// programs sample and census.
func LoadSampler(cfg Config) (*Objects, error) {
	o, err := cfg.objects("sample", "census")
	if err == nil && o.Sample == nil {
		err = errors.Join(fmt.Errorf("%w: %w", ErrUnsupported, o.Missing[0].Why), o.Close())
		o = nil
	}
	return o, err
}

func (c Config) objects(names ...string) (*Objects, error) {
	types, err := kernelTypes()
	if err != nil {
		return nil, fmt.Errorf("%w: no kernel type information (BTF, CONFIG_DEBUG_INFO_BTF): %w", ErrUnsupported, err)
	}
	o := &Objects{config: c, WaitSources: c.Waits.sources(types), FileSources: c.Waits.fileSources(types)}
	if o.coll, o.Missing, err = c.load(nil, names...); err != nil {
		return nil, err
	}
	o.Census, o.OnSwitch, o.Sample = o.coll.Programs["census"], o.coll.Programs["on_switch"], o.coll.Programs["sample"]
	if err := o.mapMemory(); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// load loads the named programs of the first object, with maps of their own or those that are shared.
// If the kernel refuses an optional program, load tries again without it.
func (c Config) load(shared map[string]*ebpf.Map, names ...string) (coll *ebpf.Collection, missing []Missing, err error) {
	spec, err := c.specs().Pull()
	if err != nil {
		return nil, nil, fmt.Errorf("committed object: %w", err)
	}
	c.User.room = c.PullStackBytes(0)
	if err := configure(spec, c); err != nil {
		return nil, nil, err
	}
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return !slices.Contains(names, name) })
	for {
		if coll, err = newCollection(spec.Copy(), shared); err == nil {
			return coll, missing, nil
		}
		name := refused(spec, err)
		if name == "" {
			return nil, nil, fmt.Errorf("%w: %w", ErrUnsupported, rights(err))
		}
		delete(spec.Programs, name)
		missing = append(missing, Missing{Program: name, Why: err})
	}
}

func configure(spec *ebpf.CollectionSpec, cfg Config) error {
	spec.Maps["cpus"].MaxEntries = uint32(cfg.CPUs)
	if m := spec.Maps["samples"]; m != nil { // the first object's alone
		m.MaxEntries = uint32(cfg.CPUs)
	}
	if err := cfg.User.set(spec); err != nil {
		return err
	}
	types, err := kernelTypes()
	if err != nil {
		return err
	}
	if err := cfg.Waits.set(spec, types); err != nil {
		return err
	}
	return setValues(spec, map[string]uint32{
		"cfg_page_shift":  pageShift(),
		"cfg_stack_bytes": uint32(StackDepth()) * 8,
		"cfg_self_tgid":   cfg.SelfTgid,
		"cfg_redact":      Flag(cfg.Redact),
		"cfg_latency":     uint32(cfg.Latency),
	})
}

// Flag is b as the programs read it.
func Flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// optional programs, and what their absence costs.
var optional = map[string]bool{"record_idle": true, "on_switch": true, "recount": true, "sample": true}

// rights replaces the library's explanation of EPERM. The library suspects the limit on
// locked memory, which BPF does not use since Linux 5.11 ("bpf: Eliminate rlimit-based
// memory accounting").
func rights(err error) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("load programs: %w (needs CAP_BPF and CAP_PERFMON, and no lockdown of confidentiality)", unix.EPERM)
	}
	return err
}

// refused names the optional program that an error of the loader is about.
func refused(spec *ebpf.CollectionSpec, err error) string {
	for name := range spec.Programs {
		if optional[name] && strings.Contains(err.Error(), "program "+name+":") {
			return name
		}
	}
	return ""
}

// Close unmaps the shared memory and closes programs and maps.
func (o *Objects) Close() error {
	err := o.mapped.unmap()
	o.mapped, o.Control, o.Slots, o.Samples = nil, nil, nil, nil
	if o.coll != nil {
		o.coll.Close()
	}
	return err
}

// KeepAlive keeps the collector from closing the programs' file descriptors
// before this call.
func (o *Objects) KeepAlive() { runtime.KeepAlive(o.coll) }

func pageShift() uint32 { return uint32(bits.TrailingZeros(uint(os.Getpagesize()))) }
