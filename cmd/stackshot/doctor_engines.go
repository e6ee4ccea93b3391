package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/bpf"
	"stackshot/internal/show"
	"stackshot/internal/topology"
	"stackshot/snapshot"
)

// engines tries each engine and each isolation level for real. It stops nothing.
func (d *doctor) engines() {
	trap, err := snapshot.Try(snapshot.EngineTrap)
	d.Engines = []option{
		tried(snapshot.EngineTrap, err),
		tried(snapshot.EnginePull, d.tryPull()),
		tried(snapshot.EngineProcfs, d.tryProcfs()),
	}
	d.Engines[0].Why = strings.TrimPrefix(d.Engines[0].Why, "engine trap: ")
	d.Isolation = []option{
		tried(snapshot.IsolationIRQOff, turnsOff(trap, bpf.NeedIRQOff, snapshot.IsolationIRQOff)),
		tried(snapshot.IsolationPreemptOff, turnsOff(trap, bpf.NeedPreemptOff, snapshot.IsolationPreemptOff, snapshot.IsolationIRQOff)),
		tried(snapshot.IsolationFIFO, snapshot.TryFIFO()),
		tried(snapshot.IsolationNone, nil),
	}
	d.choose()
	for _, p := range bpf.Probes() {
		d.Probes = append(d.Probes, probe{tried(p.Name, p.Err), p.Since})
	}
}

// turnsOff says why engine trap does not reach an isolation level. It is nil if the trap's own
// level is among levels, which are those that include it.
func turnsOff(trap snapshot.Choice, n bpf.Need, levels ...string) error {
	if slices.Contains(levels, trap.Isolation) {
		return nil
	}
	if p, lacking := bpf.FirstMissing(n); lacking {
		return errors.New(p.String())
	}
	return errors.New("needs engine trap")
}

// choose has auto choose, as take does.
func (d *doctor) choose() {
	d.Auto = choice{Engine: "none", Isolation: snapshot.IsolationNone, Warnings: []account.Warning{}}
	c, err := snapshot.Try(snapshot.EngineAuto)
	if err != nil {
		d.Auto.Why = show.Clean(err.Error())
		return
	}
	d.Auto.Engine, d.Auto.Isolation, d.Auto.MaxPauseNs = c.Engine, c.Isolation, int64(c.MaxPause)
	for _, w := range c.Warnings {
		if w.Code == "memory_pressure" || strings.HasPrefix(w.Code, "engine_") {
			d.Auto.Why = show.Clean(w.Text)
			continue
		}
		d.Auto.Warnings = append(d.Auto.Warnings, account.Warning{Code: w.Code, Text: show.Clean(w.Text)})
	}
}

func tried(name string, err error) option {
	if err != nil {
		return option{Name: name, Why: show.Clean(err.Error())}
	}
	return option{Name: name, OK: true}
}

// tryPull loads the programs and records this task with them.
func (d *doctor) tryPull() error {
	t, err := topology.Machine()
	if err != nil {
		return err
	}
	cpus := t.CPUs[len(t.CPUs)-1].ID + 1 // they are in order, and there is one at least
	o, err := bpf.Load(bpf.Config{CPUs: cpus, SelfTgid: uint32(os.Getpid())})
	if err != nil {
		return err
	}
	defer o.Close()
	d.lacks(o.Missing)
	p, err := o.LoadPull()
	if err != nil {
		return err
	}
	defer p.Close()
	d.lacks(p.Missing)
	return recordSelf(p)
}

func (d *doctor) lacks(missing []bpf.Missing) {
	for _, m := range missing {
		d.Missing = append(d.Missing, option{Name: m.Program, Why: show.Clean(m.Why.Error())})
	}
}

func recordSelf(p *bpf.Pull) error {
	var pass bpf.Iterator
	scope := bpf.TaskScope(uint32(os.Getpid()))
	if errno := pass.Open(p.RecordTask.FD(), &scope); errno != 0 {
		return fmt.Errorf("task iterator of one task (Linux 6.1): %w", errno)
	}
	defer pass.Close()
	buf := make([]byte, 64<<10)
	n, errno := pass.Read(buf)
	p.KeepAlive()
	switch {
	case errno != 0:
		return fmt.Errorf("read a task iterator: %w", errno)
	case n == 0:
		return fmt.Errorf("a task iterator did not find this process (pid %d)", os.Getpid())
	}
	return nil
}

// tryProcfs reads of this process what the engine reads of every one.
func (d *doctor) tryProcfs() error {
	if _, err := d.proc.Tasks(); err != nil {
		return fmt.Errorf("list tasks: %w", err)
	}
	_, err := d.proc.Stat(os.Getpid())
	return err
}
