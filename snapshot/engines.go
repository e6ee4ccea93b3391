package snapshot

import (
	"fmt"
	"time"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
)

// chooseEngine opens the engine asked for.
func (s *Session) chooseEngine(h hooks) (engine, error) {
	var e engine
	var err error
	switch s.options.Engine {
	case EngineTrap:
		e, err = newTrap(s.options, s.plan, h)
	case EnginePull:
		e, err = newPull(s.options, s.plan, h)
	case EngineProcfs:
		e = s.openProcfs()
	default:
		e = s.bestEngine(h)
	}
	if err != nil {
		return nil, fmt.Errorf("engine %s: %w", s.options.Engine, err)
	}
	if p, ok := e.(interface{ warnings() []kcdata.Warning }); ok {
		s.warnings = append(s.warnings, p.warnings()...)
	}
	return e, nil
}

// bestEngine takes trap, else pull, else procfs; each step down has its reason
// in a warning. Under memory pressure pull is passed over, since it allocates
// while it holds the machine. The trap does not: what it needs it has from Open,
// or gets while the machine still runs, where a CPU for which there is nothing
// comes late and is left out.
func (s *Session) bestEngine(h hooks) engine {
	if s.thrift.engine != nil {
		s.warn("engine_procfs", "nothing was stopped: "+s.thrift.engine.Error())
		return s.openProcfs()
	}
	p, err := newPull(s.options, s.plan, h)
	if err != nil {
		s.warn("engine_procfs", "nothing was stopped: "+err.Error())
		return s.openProcfs()
	}
	e, err := trapOver(p)
	if err == nil {
		return e
	}
	why := "engine trap: " + err.Error()
	pressure := memoryPressure(s.machine)
	if pressure == "" {
		s.warn("engine_pull", "the machine is held by threads at SCHED_FIFO, not by the kernel itself: "+why)
		return p
	}
	if err := p.close(); err != nil {
		pressure += fmt.Sprintf(" (and engine pull did not close: %v)", err)
	}
	s.warn("memory_pressure", "nothing was stopped: "+pressure+", engine pull allocates while it holds the machine; "+why)
	return s.openProcfs()
}

// lacking names what the kernel lacks for the trap, where that is why.
func lacking(err error) error {
	if p, lacks := bpf.Lacks(bpf.NeedTrap); lacks {
		return fmt.Errorf("%w: %v", bpf.ErrUnsupported, p)
	}
	return err
}

// warnings of an open engine, for every file of its session.
func (p *pull) warnings() []kcdata.Warning { return append(p.held(), p.userCapped()...) }

func (p *pull) held() []kcdata.Warning {
	list := append(p.missing(), p.userOff()...)
	if why := p.fifoRefused(); why != nil {
		list = append(list, kcdata.Warning{Code: "isolation_none", Text: "other tasks ran during the capture: " + why.Error()})
	}
	return list
}

// missing are the programs that were left out.
func (p *pull) missing() (list []kcdata.Warning) {
	for _, m := range p.objects.Missing {
		list = append(list, kcdata.Warning{Code: "program_missing", Text: "this kernel refuses the BPF program " + m.Program + ": " + m.Why.Error()})
	}
	return list
}

// Without SCHED_FIFO a worker may wait for its CPU like any thread. Once there
// it holds it all the same, where the kernel can turn preemption off.
func (e *trap) warnings() []kcdata.Warning {
	why := e.fifoRefused()
	if why == nil || e.level == IsolationNone {
		return e.held()
	}
	return append(append(e.missing(), e.userOff()...), kcdata.Warning{
		Code: "fifo_refused", Text: "a busy CPU may come late to the stop and be left out: " + why.Error(),
	})
}

// levelOf names what is off, in bits of bpf.TrapWorker.Level; where nothing
// is, the workers' priority is what holds the machine.
func (e *trap) levelOf(off uint32) string {
	switch {
	case off&bpf.InterruptsOff != 0:
		return IsolationIRQOff
	case off&bpf.PreemptionOff != 0:
		return IsolationPreemptOff
	}
	return e.pull.level
}

// pauseFor is the bound where none was asked for: with interrupts off even the
// machine's clocks and watchdogs wait.
func pauseFor(isolation string) time.Duration {
	if isolation == IsolationIRQOff {
		return irqoffMaxPause
	}
	return defaultMaxPause
}

// Choice is an engine as it opens on this machine now.
type Choice struct {
	Engine    string
	Isolation string
	MaxPause  time.Duration
	Warnings  []kcdata.Warning // that a capture would have before it begins
}

// Try opens an engine as a capture would, and the lock if it takes that, and closes
// both. Nothing is stopped, and nobody is waited for. Errors: those of Open.
func Try(name string) (Choice, error) {
	s, err := Open(Options{Engine: name})
	if err != nil {
		return Choice{}, err
	}
	if s.engine.stops() {
		if _, err := TryLock(); err != nil {
			s.warn("no_lock", err.Error())
		}
	}
	c := Choice{s.engine.name(), s.engine.isolation(), s.options.MaxPause, s.warnings}
	return c, s.Close()
}
