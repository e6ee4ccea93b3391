package bpf

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// Probe is one kernel feature that an engine uses: a kernel function that a certain type
// of program calls, or a program type. Whether the kernel has it is found out by loading
// a program that uses nothing else (probe.bpf.c).
type Probe struct {
	Name  string
	Since string // the Linux release that brought it, for people: presence decides
	Err   error  // nil: the kernel takes it; else why not, in its own words

	program string // that asks
	need    Need
	answer  func() error // the same for the life of the process
}

// Lacks reports whether the kernel does not have the feature. If Err is set and Lacks is
// false, this process has no right to ask, or there is no BPF.
func (p Probe) Lacks() bool {
	var refused *ebpf.VerifierError
	return errors.Is(p.Err, ebpf.ErrNotSupported) || errors.As(p.Err, &refused) && !errors.Is(p.Err, unix.EPERM)
}

// String gives the name and, if the kernel refuses it, release and reason.
func (p Probe) String() string {
	if p.Err == nil {
		return p.Name
	}
	return fmt.Sprintf("%s (Linux %s): %v", p.Name, p.Since, p.Err)
}

// Need is a capability that requires the probed feature.
type Need int

// What requires a feature. A level of isolation requires those of NeedTrap too.
const (
	NeedNone Need = iota // only a detail is lost without it
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
	{Name: "iter/task_file", Since: "5.8", program: "on_file"},
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

// ask loads one program. It is a few instructions long, so the verifier's log, which has
// the kernel's reason, costs nothing.
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

// Probes asks for all features. Answers are kept for the life of the process.
func Probes() []Probe {
	var out []Probe
	for _, p := range probes {
		out = append(out, p.ask())
	}
	return out
}

// FirstMissing returns the first feature that n requires and the kernel does not give; false:
// it gives all.
func FirstMissing(n Need) (Probe, bool) {
	for _, p := range probes {
		if p.need == n && p.answer() != nil {
			return p.ask(), true
		}
	}
	return Probe{}, false
}

// Level is what the loaded program turns off: PreemptionOff, InterruptsOff.
func (t *Trap) Level() uint32 { return found() }

// found is which of the weak functions in kfunc.h the kernel has.
var found = sync.OnceValue(func() (level uint32) {
	kernel, err := kernelTypes()
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
