package bpf

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// Probe is one thing that an engine asks of the kernel: a function, called from
// the type of program that calls it, or a type of program. The verifier was
// asked by a program that does nothing else (probe.bpf.c).
type Probe struct {
	Name  string
	Since string // the Linux release that brought it, for people: presence decides
	Err   error  // nil: the kernel takes it; else why not, in its own words

	program string // that asks
	need    Need
	answer  func() error // the same for the life of the process
}

// Lacks says that the kernel has it not, whoever asks; else the rights to ask
// are missing, or BPF is.
func (p Probe) Lacks() bool {
	var refused *ebpf.VerifierError
	return errors.Is(p.Err, ebpf.ErrNotSupported) || errors.As(p.Err, &refused) && !errors.Is(p.Err, unix.EPERM)
}

// String says why not.
func (p Probe) String() string {
	if p.Err == nil {
		return p.Name
	}
	return fmt.Sprintf("%s (Linux %s): %v", p.Name, p.Since, p.Err)
}

// Need is what cannot be without a probe's thing.
type Need int

// Needs. A level of isolation needs what the trap needs besides.
const (
	NeedNone Need = iota // some detail
	NeedTrap
	NeedPreemptOff
	NeedIRQOff
)

// Constant after init.
var probes = []Probe{
	{Name: "bpf_iter_num_new", Since: "6.4", program: "iter_num", need: NeedTrap},
	{Name: "bpf_iter_task_new", Since: "6.7", program: "iter_task", need: NeedTrap},
	{Name: "bpf_task_from_pid", Since: "6.2", program: "from_pid", need: NeedTrap},
	{Name: "bpf_preempt_disable", Since: "6.10", program: "preempt_off", need: NeedPreemptOff},
	{Name: "bpf_get_task_stack, preemption off", Since: "6.10", program: "stack_preempt_off", need: NeedPreemptOff},
	{Name: "bpf_local_irq_save", Since: "6.14", program: "irq_off", need: NeedIRQOff},
	{Name: "bpf_get_task_stack, interrupts off", Since: "6.14", program: "stack_irq_off", need: NeedIRQOff},
	{Name: "tp_btf/sched_switch", Since: "5.5", program: "on_sched_switch"},
	{Name: "perf_event", Since: "4.9", program: "on_perf_event"},
}

func init() {
	for i := range probes {
		p := &probes[i]
		p.answer = sync.OnceValue(func() error { return ask(p.program) })
	}
}

func (p Probe) ask() Probe {
	p.Err = p.answer()
	return p
}

// ask loads one program. These are a few instructions long: the log of a
// refused one, which has the kernel's reason, costs nothing.
func ask(program string) error {
	spec, err := loadProbeObject()
	if err != nil {
		return fmt.Errorf("committed object: %w", err)
	}
	prog, err := ebpf.NewProgram(spec.Programs[program])
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("load program: %w", unix.EPERM) // the library guesses at MEMLOCK
	}
	if err != nil {
		return err
	}
	return prog.Close()
}

// Probes asks for everything. Answers are kept for the life of the process.
func Probes() []Probe {
	var out []Probe
	for _, p := range probes {
		out = append(out, p.ask())
	}
	return out
}

// Lacks is the first thing that n asks and the kernel does not give; false: it
// gives all.
func Lacks(n Need) (Probe, bool) {
	for _, p := range probes {
		if p.need == n && p.answer() != nil {
			return p.ask(), true
		}
	}
	return Probe{}, false
}

// Level is what the loaded program turns off: PreemptionOff, InterruptsOff.
func (t *Trap) Level() uint32 { return found() }

// found is what the loader finds of the weak functions in kfunc.h.
var found = sync.OnceValue(func() (level uint32) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return 0
	}
	for name, bit := range map[string]uint32{"bpf_preempt_disable": PreemptionOff, "bpf_local_irq_save": InterruptsOff} {
		var fn *btf.Func
		if kernel.TypeByName(name, &fn) == nil {
			level |= bit
		}
	}
	return level
})
