package screen

import (
	"fmt"
	"strings"

	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// machine builds snapshots for the tests of CPU, MEMORY, DISK and MANY.
type machine struct {
	s    *kcdata.Snapshot
	strs []byte
	syms []kcdata.LinuxSymbol
	at   map[string]uint64
	tid  uint32
}

const (
	ms  = uint64(1e6)
	sec = uint64(1e9)
	// now is what every CPU's runqueue clock reads.
	now = 100 * 3600 * sec
)

func newMachine(cpus int) *machine {
	m := &machine{strs: []byte{0}, at: map[string]uint64{}, tid: 50_000, s: &kcdata.Snapshot{
		HasMachine: true, HasCapture: true, Engine: "trap", Isolation: "irqoff",
		Meminfo:  "MemTotal:       16384000 kB\nMemAvailable:    8192000 kB\nSwapTotal:       1024000 kB\nSwapFree:        1024000 kB\n",
		Pressure: "cpu some avg10=0.00 avg60=0.00\nmemory some avg10=0.00\nmemory full avg10=0.00\n",
	}}
	m.s.Machine = kcdata.LinuxMachine{BoottimeNs: now, PidNSIsFirst: 1}
	m.s.Capture.StopNs = now
	for n := range cpus {
		m.s.CPUs = append(m.s.CPUs, kcdata.LinuxCPU{CPU: uint32(n), Flags: kcdata.CPUStopped | kcdata.CPUIdle, RqClock: now, RqClockAt: now})
	}
	m.proc(1, "systemd", 0)
	m.sleep(m.s.Tasks[0], 3*sec, "ep_poll")
	return m
}

// proc adds a process, an hour old.
func (m *machine) proc(pid uint32, name string, ppid uint32) *kcdata.Task {
	t := &kcdata.Task{ID: uint64(pid), Name: name, HasSnapshot: true, HasLinux: true}
	t.Linux = kcdata.LinuxTask{Present: kcdata.TaskHasIDs | kcdata.TaskHasTimes, Tgid: pid, Ppid: ppid, StartBoottime: now - 3600*sec}
	m.s.Tasks = append(m.s.Tasks, t)
	return t
}

// thread adds a thread to t, an hour old; the first has the number of t.
func (m *machine) thread(t *kcdata.Task, state uint32, frames ...string) *kcdata.Thread {
	id := uint32(t.ID)
	if len(t.Threads) > 0 {
		m.tid++
		id = m.tid
	}
	th := &kcdata.Thread{ID: uint64(id), Name: t.Name, HasSnapshot: true, HasLinux: true, Kernel: m.stack(frames...)}
	th.Linux = kcdata.LinuxThread{
		Present: kcdata.ThreadHasSchedInfo | kcdata.ThreadHasOnCPU | kcdata.ThreadHasStart, Tid: id, Tgid: uint32(t.ID), State: state,
		StartBoottime: t.Linux.StartBoottime, LastArrival: now - 3600*sec,
	}
	t.Threads = append(t.Threads, th)
	return th
}

func (m *machine) sleep(t *kcdata.Task, age uint64, frames ...string) *kcdata.Thread {
	th := m.thread(t, kcdata.StateInterruptible, frames...)
	th.Linux.LastArrival = now - age
	return th
}

// run puts a new thread of t on a CPU, age ago.
func (m *machine) run(t *kcdata.Task, cpu uint32, age uint64) *kcdata.Thread {
	th := m.thread(t, 0)
	th.Linux.OnCPU, th.Linux.CPU, th.Linux.LastArrival = 1, cpu, now-age
	m.s.CPUs[cpu].Flags &^= kcdata.CPUIdle
	return th
}

// wait lets a new thread of t wait for a CPU.
func (m *machine) wait(t *kcdata.Task, cpu uint32, age uint64, frames ...string) *kcdata.Thread {
	th := m.thread(t, 0, frames...)
	th.Linux.CPU, th.Linux.LastQueued = cpu, now-age
	return th
}

// blocked adds a thread that has been in D for age.
func (m *machine) blocked(t *kcdata.Task, age uint64, frames ...string) *kcdata.Thread {
	th := m.thread(t, kcdata.StateUninterruptible, frames...)
	th.Linux.LastArrival = now - age
	return th
}

// own is this program, which had some CPUs when it stopped the machine.
func (m *machine) own(cpus ...uint32) {
	t := m.proc(99, "stackshot", 1)
	t.Linux.Present |= kcdata.TaskIsSelf
	for n := range m.s.CPUs { // its workers have all CPUs in the stop
		m.thread(t, 0).Linux.Present |= kcdata.ThreadIsSelf
		t.Threads[n].Linux.OnCPU, t.Threads[n].Linux.CPU = 1, uint32(n)
	}
	for _, cpu := range cpus {
		c := &m.s.CPUs[cpu]
		c.Flags = c.Flags&^kcdata.CPUIdle | kcdata.CPURanKnown
		c.RanTid, c.RanTgid = 98, 99
	}
}

func (m *machine) str(s string) uint32 {
	off := uint32(len(m.strs))
	m.strs = append(append(m.strs, s...), 0)
	return off
}

// stack turns frames, "name" or "name [module]", into addresses that have these names.
func (m *machine) stack(frames ...string) (out []uint64) {
	for _, f := range frames {
		a, ok := m.at[f]
		if !ok {
			a = 0xffffffff81000000 + uint64(len(m.at))*0x1000
			m.at[f] = a
			name, module, _ := strings.Cut(strings.TrimSuffix(f, "]"), " [")
			m.syms = append(m.syms, kcdata.LinuxSymbol{Addr: a, Name: m.str(name), Module: m.str(module), Size: 0x100})
		}
		out = append(out, a)
	}
	return out
}

// group adds a control group of version 2 with a limit.
func (m *machine) group(path string, above *kcdata.Cgroup, current, limit uint64) *kcdata.Cgroup {
	g := &kcdata.Cgroup{Path: path, Above: above}
	g.LinuxCgroup = kcdata.LinuxCgroup{
		Version: 2, Current: current, Max: limit, High: kcdata.CgroupUnlimited,
		Present: kcdata.CgroupHasCurrent | kcdata.CgroupHasMax | kcdata.CgroupHasHigh | kcdata.CgroupHasPressure | kcdata.CgroupHasEvents,
	}
	m.s.Cgroups = append(m.s.Cgroups, g)
	return g
}

// done finishes the symbol table.
func (m *machine) done() *kcdata.Snapshot {
	m.s.Symbols = kcdata.NewSymbolTable(m.syms, m.strs)
	return m.s
}

func (m *machine) view() *view {
	return newView(m.done(), Options{Verdict: waitgraph.Judge(waits.Of(m.s), waitgraph.Options{})})
}

// resources are the sections on what a machine has too little of.
func (v *view) resources() []section { return []section{v.cpu(), v.memory(), v.disk(), v.many()} }

// entries has these sections as text: "CPU! " before what is wrong, "CPU  " before what is minor.
func (m *machine) entries() []string {
	var out []string
	for _, s := range m.view().resources() {
		for _, e := range s.entries {
			mark := "! "
			if e.minor {
				mark = "  "
			}
			out = append(out, s.title+mark+e.line)
			for _, d := range e.more {
				out = append(out, s.title+"  "+d)
			}
		}
	}
	return out
}

func (m *machine) text() string { return strings.Join(m.entries(), "\n") }

func (m *machine) psi(resource string, some, full float64) {
	m.s.Pressure += fmt.Sprintf("%s some avg10=%.2f avg60=0\n%s full avg10=%.2f\n", resource, some, resource, full)
}
