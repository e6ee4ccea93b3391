package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Options are the user's wishes and the process's limits.
type Options struct {
	Cpus         string // --cpus: list of the CPUs that record; "": every stopped CPU that is not throttled
	CPUClass     string // --cpu-class: "0-3=P,4-7=E"; "": the kinds of the machine
	StopIsolated bool   // --stop-isolated: stop isolcpus and nohz_full CPUs too
	Allowed      []int  // CPUs a thread of ours can be put on, from Allowed; nil: all
	Initiator    int    // the CPU that took the request, preferred as main; -1: no preference

	Throttled map[int]string // CPUs that are throttled now, with the reason, from Throttles
}

// Reason is the set of reasons why a CPU is left running.
type Reason uint8

// The reasons.
const (
	Isolated   Reason = 1 << iota // isolcpus=
	NohzFull                      // nohz_full=
	Partition                     // isolated cpuset partition (cgroup v2), and not in isolcpus=
	NotAllowed                    // outside the cpuset of this process: no thread of ours can run there
)

var reasonText = []struct {
	bit  Reason
	text string
}{
	{Isolated, "isolcpus"},
	{NohzFull, "nohz_full"},
	{Partition, "isolated cpuset partition"},
	{NotAllowed, "outside the CPUs this process may use"},
}

// String joins the reasons with "and"; "" for none.
func (r Reason) String() string {
	var texts []string
	for _, t := range reasonText {
		if r&t.bit != 0 {
			texts = append(texts, t.text)
		}
	}
	return strings.Join(texts, " and ")
}

// Causes inside a CPUError, and ErrNoneToStop.
var (
	ErrOffline    = errors.New("is offline")
	ErrNotPresent = errors.New("does not exist")
	ErrNotAllowed = errors.New("is outside the CPUs this process may use")
	ErrIsolated   = errors.New("is isolated and left running; --stop-isolated takes it")
	ErrNoClass    = errors.New("has no class; name every online CPU")
	ErrNoneToStop = errors.New("no CPU can be stopped")
)

// CPUError is the error for a CPU that an option names and that cannot be used.
type CPUError struct {
	Option string // "--cpus", "--cpu-class"
	CPU    int
	Err    error // one of the causes above
}

func (e *CPUError) Error() string { return fmt.Sprintf("%s: CPU %d %v", e.Option, e.CPU, e.Err) }

// Unwrap gives the cause.
func (e *CPUError) Unwrap() error { return e.Err }

// Plan is what a capture does with each CPU. Constant after Plan returned it.
type Plan struct {
	Topology *Topology // with --cpu-class applied
	Stop     []int     // CPUs that stop
	Work     []int     // those of Stop that record
	Left     []int     // CPUs that are left running; Why says why
	Main     int       // the CPU that takes the census; one of Work

	why     map[int]Reason
	options Options
}

// Plan decides which CPUs stop, which record and which is main. Errors: ErrBadList
// and ErrBadClass for an option of another form, *CPUError for a CPU that cannot be
// used, ErrNoneToStop.
func (t *Topology) Plan(o Options) (*Plan, error) {
	if o.CPUClass != "" {
		var err error
		if t, err = t.withClasses(o.CPUClass); err != nil {
			return nil, err
		}
	}
	p := &Plan{Topology: t, why: map[int]Reason{}, options: o}
	for i := range t.CPUs {
		p.place(&t.CPUs[i], o)
	}
	if err := p.choose(o.Cpus); err != nil {
		return nil, err
	}
	if len(p.Stop) == 0 {
		return nil, fmt.Errorf("%w: CPUs %s are left running (%s)", ErrNoneToStop, FormatCPUList(p.Left), p.Why(p.Left[0]))
	}
	p.Main = p.main(o.Initiator)
	return p, nil
}

// With makes the same plan for other throttled CPUs.
func (p *Plan) With(throttled map[int]string) (*Plan, error) {
	o := p.options
	o.CPUClass, o.Throttled = "", throttled // p.Topology has the classes already
	return p.Topology.Plan(o)
}

// Throttle says why cpu is throttled; "": it is not. Such a CPU stops and does not
// record, unless --cpus names it or every CPU is throttled.
func (p *Plan) Throttle(cpu int) string { return p.options.Throttled[cpu] }

// Spared reports whether cpu stops and does not record, because it is throttled.
func (p *Plan) Spared(cpu int) bool {
	return p.options.Cpus == "" && p.Throttle(cpu) != "" && slices.Contains(p.Stop, cpu) && !slices.Contains(p.Work, cpu)
}

// Why says why cpu is left running; 0 for a CPU that is not in Left.
func (p *Plan) Why(cpu int) Reason { return p.why[cpu] }

// Kind gives a CPU's kind, KindSMP for one that is not online.
func (p *Plan) Kind(cpu int) Kind {
	c, _ := p.Topology.CPU(cpu)
	return c.Kind
}

// place puts one CPU into Stop or Left.
func (p *Plan) place(cpu *CPU, o Options) {
	if !cpu.Online {
		return
	}
	var why Reason
	if !o.StopIsolated {
		why = cpu.Isolation
	}
	if o.Allowed != nil && !slices.Contains(o.Allowed, cpu.ID) {
		why |= NotAllowed
	}
	if why == 0 {
		p.Stop = append(p.Stop, cpu.ID)
		return
	}
	p.Left = append(p.Left, cpu.ID)
	p.why[cpu.ID] = why
}

// choose fills Work: the CPUs of Stop that are not throttled or, if all are, the whole of
// Stop. A CPU named by --cpus records even if it is throttled. If one of these does not
// stop, that is an error, since the user named it.
func (p *Plan) choose(list string) error {
	if list == "" {
		p.Work = slices.DeleteFunc(slices.Clone(p.Stop), func(cpu int) bool { return p.Throttle(cpu) != "" })
		if len(p.Work) == 0 {
			p.Work = slices.Clone(p.Stop)
		}
		return nil
	}
	cpus, err := ParseCPUList(list)
	if err != nil {
		return fmt.Errorf("--cpus: %w", err)
	}
	if len(cpus) == 0 {
		return fmt.Errorf("--cpus: %w: %q names no CPU", ErrBadList, list)
	}
	for _, id := range cpus {
		if err := p.Topology.usable("--cpus", id); err != nil {
			return err
		}
		switch why := p.why[id]; {
		case why&NotAllowed != 0:
			return &CPUError{Option: "--cpus", CPU: id, Err: ErrNotAllowed}
		case why != 0:
			return &CPUError{Option: "--cpus", CPU: id, Err: ErrIsolated}
		}
	}
	p.Work = cpus
	return nil
}

// usable says what is wrong with a CPU that an option names.
func (t *Topology) usable(option string, id int) error {
	cpu, ok := t.CPU(id)
	switch {
	case !ok:
		return &CPUError{Option: option, CPU: id, Err: ErrNotPresent}
	case !cpu.Online:
		return &CPUError{Option: option, CPU: id, Err: ErrOffline}
	}
	return nil
}

// main picks the CPU that takes the census: the initiator if it records and is no E core;
// else the first P core that records; else the initiator if it records; else the first
// CPU that records.
func (p *Plan) main(initiator int) int {
	works := slices.Contains(p.Work, initiator)
	if works && p.Kind(initiator) != KindE {
		return initiator
	}
	if i := slices.IndexFunc(p.Work, func(cpu int) bool { return p.Kind(cpu) == KindP }); i >= 0 {
		return p.Work[i]
	}
	if works {
		return initiator
	}
	return p.Work[0]
}
