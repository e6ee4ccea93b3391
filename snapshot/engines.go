package snapshot

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/engine"
	"stackshot/internal/engine/proc"
	"stackshot/internal/engine/pull"
	"stackshot/internal/engine/stop"
	"stackshot/internal/engine/trap"
	"stackshot/internal/topology"
	"stackshot/kcdata"
)

// chooseEngine opens the engine asked for.
func (s *Session) chooseEngine() (err error) {
	switch s.options.Engine {
	case EngineTrap:
		if s.team, err = stop.NewTeam(s.config()); err == nil {
			s.engine, err = trap.New(s.team)
		}
	case EnginePull:
		if s.team, err = stop.NewTeam(s.config()); err == nil {
			s.engine, err = pull.New(s.team)
		}
	case EngineProcfs:
		s.engine = s.openProcfs()
	default:
		s.bestEngine()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("engine %s: %w", s.options.Engine, err), s.closeTeam())
	}
	if e, ok := s.engine.(*trap.Engine); ok {
		e.Stopping = s.tellResident
	}
	s.warnings = append(s.warnings, s.engine.Caps().Warnings...)
	return nil
}

// bestEngine takes trap, else pull, else procfs. A warning gives the reason for each
// step down. Under memory pressure it does not take pull, which allocates while it
// holds the machine. Engine trap does not: it has what it needs from Open, or gets it
// while the machine still runs. A CPU for which there is nothing then comes late and
// is left out.
func (s *Session) bestEngine() {
	s.engine = s.openProcfs()
	if s.thrift.engine != nil {
		s.warn("engine_procfs", "nothing was stopped: "+s.thrift.engine.Error())
		return
	}
	team, err := stop.NewTeam(s.config())
	if err != nil {
		s.warnNotRoot(err)
		s.warn("engine_procfs", "nothing was stopped: "+err.Error())
		return
	}
	s.team = team
	e, err := trap.New(team)
	if err == nil {
		s.engine = e
		return
	}
	why := "engine trap: " + err.Error()
	if pressure := memoryPressure(s.machine); pressure != "" {
		if err := s.closeTeam(); err != nil {
			pressure += fmt.Sprintf(" (and engine pull did not close: %v)", err)
		}
		s.warn("memory_pressure", "nothing was stopped: "+pressure+", engine pull allocates while it holds the machine; "+why)
		return
	}
	p, err := pull.New(team)
	if err != nil {
		s.warn("engine_procfs", "nothing was stopped: engine pull: "+errors.Join(err, s.closeTeam()).Error()+"; "+why)
		return
	}
	s.warn("engine_pull", "the machine is held by threads at SCHED_FIFO, not by the kernel itself: "+why)
	s.engine = p
}

func (s *Session) openProcfs() *proc.Engine {
	e := proc.New(s.proc, s.plan, s.host.Kallsyms, s.options.Redact)
	if s.options.UserStacks == UserStacksAuto {
		e.TakeUser(s.options.StackBytes)
	}
	return e
}

// config translates the session's options for an engine that stops the machine.
func (s *Session) config() engine.Config {
	o := &s.options
	user, why := o.userTaking(s.hooks.FindDirectMap())
	return engine.Config{
		Plan: s.plan, UserWhy: why, ArrivalBudget: o.ArrivalBudget, Buffer: o.Buffer, MaxBuffer: o.MaxBuffer,
		Prompt: o.Prompt, Hooks: s.hooks,
		Bpf: bpf.Config{
			CPUs: possibleCPUs(s.plan), SelfTgid: uint32(os.Getpid()), Redact: o.Redact,
			Latency: latencyLevels[o.Latency], User: user, Waits: s.host.Waits(o.Wait == WaitOn, user.Memory != nil),
			Specs: s.hooks.Specs,
		},
	}
}

func possibleCPUs(plan *topology.Plan) int {
	return slices.MaxFunc(plan.Topology.CPUs, func(a, b topology.CPU) int { return a.ID - b.ID }).ID + 1
}

// closeTeam ends the workers. No engine may need them any more.
func (s *Session) closeTeam() error {
	if s.team == nil {
		return nil
	}
	defer func() { s.team = nil }()
	return s.team.Close()
}

// pauseFor is the default of --max-pause. With interrupts off it is shorter, since even
// the machine's clocks and watchdogs wait then.
func pauseFor(isolation string) time.Duration {
	if isolation == IsolationIRQOff {
		return irqoffMaxPause
	}
	return defaultMaxPause
}

// TryFIFO says why workers could not hold their CPUs; nil if they can. It asks
// on a thread made for it and ended after it.
func TryFIFO() error { return stop.TryFIFO() }

// Choice is an engine as it opens on this machine now.
type Choice struct {
	Engine    string
	Isolation string
	MaxPause  time.Duration
	Warnings  []kcdata.Warning // that Open would put into every capture
}

// Try opens an engine as a capture would, and the lock if the engine needs it, and closes
// both. It stops nothing, and waits for nobody. Errors: those of Open.
func Try(name string) (Choice, error) {
	s, err := Open(Options{Engine: name})
	if err != nil {
		return Choice{}, err
	}
	can := s.engine.Caps()
	if can.Stops {
		if _, err := TryLock(); err != nil {
			s.warn("no_lock", err.Error())
		}
	}
	c := Choice{can.Name, can.Isolation, s.options.MaxPause, s.warnings}
	return c, s.Close()
}
