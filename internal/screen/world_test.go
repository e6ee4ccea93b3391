package screen

import (
	"strings"

	"stackshot/kcdata"
)

// world builds snapshots for the tests: the stories in stories_test.go are
// told in its verbs.
type world struct {
	s    *kcdata.Snapshot
	strs []byte
	syms []kcdata.LinuxSymbol
	at   map[string]uint64 // frame text to its address
	tid  uint64
}

const (
	second = uint64(1e9)
	minute = 60 * second
	// now is what every CPU's runqueue clock reads.
	now = 100 * 3600 * second
)

func newWorld(cpus int) *world {
	w := &world{strs: []byte{0}, at: map[string]uint64{}, s: &kcdata.Snapshot{
		HasMachine: true, HasCapture: true,
		Hostname: "db7", Release: "6.18.44", Version: "#1 SMP PREEMPT_DYNAMIC", Arch: "x86_64",
		Engine: "trap", Isolation: "irqoff", Loadavg: "42.10 17.02 6.21 1/812 9911\n",
		Meminfo: "MemTotal:       16384000 kB\nMemFree:  120000 kB\nMemAvailable:    2048000 kB\n",
	}}
	w.s.Machine = kcdata.LinuxMachine{
		RealtimeNs: 1_795_000_000 * second, BoottimeNs: now, MonotonicNs: now, PidNS: 4026531836, PidNSIsFirst: 1, UserHz: 100,
	}
	w.s.Capture = kcdata.LinuxCapture{StoppedNs: 4_130_000, WindowNs: 3_200_000, Tries: 1}
	for n := range cpus {
		w.s.CPUs = append(w.s.CPUs, kcdata.LinuxCPU{
			CPU: uint32(n), Flags: kcdata.CPUStopped | kcdata.CPUWorked, RqClock: now, RqClockAt: now,
		})
	}
	w.tid = 5000
	return w
}

// done finishes the symbol table.
func (w *world) done() *kcdata.Snapshot {
	w.s.Symbols = kcdata.NewSymbolTable(w.syms, w.strs)
	return w.s
}

func (w *world) str(s string) uint32 {
	if s == "" {
		return 0
	}
	off := uint32(len(w.strs))
	w.strs = append(append(w.strs, s...), 0)
	return off
}

// stack turns "name [module]" frames, leaf first, into addresses that the
// snapshot's symbol table names again. "?" is an address nobody knows.
func (w *world) stack(frames ...string) []uint64 {
	var out []uint64
	for _, f := range frames {
		if f == "?" {
			out = append(out, 0xffffffffdeadbeef)
			continue
		}
		a, ok := w.at[f]
		if !ok {
			name, module, _ := strings.Cut(strings.TrimSuffix(f, "]"), " [")
			a = 0xffffffff81000000 + uint64(len(w.at))*0x1000 + 0x5d
			w.at[f] = a
			w.syms = append(w.syms, kcdata.LinuxSymbol{Addr: a, Offset: 0x5d, Name: w.str(name), Module: w.str(module), Size: 0x200})
		}
		out = append(out, a)
	}
	return out
}

// task adds a process without threads.
func (w *world) task(pid uint32, name string) *kcdata.Task {
	t := &kcdata.Task{ID: uint64(pid), Name: name, HasSnapshot: true, HasLinux: true}
	t.Linux = kcdata.LinuxTask{Present: kcdata.TaskHasIDs | kcdata.TaskHasSignal, Tgid: pid, Ppid: 1, UID: 1000}
	t.Memory = &kcdata.LinuxTaskMemory{RssAnon: 25 << 20, RssFile: 7 << 20}
	t.Cmdline = []string{"/usr/bin/" + name}
	w.s.Tasks = append(w.s.Tasks, t)
	return t
}

// kthread adds a kernel thread, asleep waiting for work.
func (w *world) kthread(pid uint32, name string, state uint32, frames ...string) *kcdata.Thread {
	t := &kcdata.Task{ID: uint64(pid), Name: name, HasSnapshot: true, HasLinux: true}
	t.Linux = kcdata.LinuxTask{Present: kcdata.TaskHasIDs | kcdata.TaskIsKernel, Tgid: pid, Ppid: 2}
	w.s.Tasks = append(w.s.Tasks, t)
	th := w.thread(t, name, state, 3*minute, frames...)
	th.Linux.Flags |= kcdata.PFKthread
	return th
}

// thread adds a thread that came onto its CPU age ago and has been in state
// since. The first thread of a task has its id.
func (w *world) thread(t *kcdata.Task, name string, state uint32, age uint64, frames ...string) *kcdata.Thread {
	id := t.ID
	if len(t.Threads) > 0 {
		w.tid++
		id = w.tid
	}
	th := &kcdata.Thread{ID: id, Name: name, HasSnapshot: true, HasLinux: true, Kernel: w.stack(frames...)}
	th.Linux = kcdata.LinuxThread{
		Present: kcdata.ThreadHasSchedInfo | kcdata.ThreadHasStack | kcdata.ThreadHasOnCPU,
		Tid:     uint32(id), Tgid: t.Linux.Tgid, State: state, LastArrival: now - age, KstackDepth: uint32(len(frames)),
	}
	t.Threads = append(t.Threads, th)
	return th
}

// in sets the system call.
func in(th *kcdata.Thread, nr int64) *kcdata.Thread {
	th.Syscall = &kcdata.LinuxSyscall{Nr: nr, IP: 0x7f0000001000, SP: 0x7ffe00001000}
	return th
}

// onCPU puts a thread on a CPU.
func (w *world) onCPU(th *kcdata.Thread, cpu uint32) *kcdata.Thread {
	th.Linux.CPU, th.Linux.OnCPU, th.Linux.State = cpu, 1, 0
	c := &w.s.CPUs[cpu]
	c.RanTid, c.RanTgid, c.Flags = th.Linux.Tid, th.Linux.Tgid, c.Flags|kcdata.CPURanKnown
	return th
}

// background is what every machine has: idle threads, kernel threads that wait
// for work, an init, and the snapshotter itself.
func (w *world) background() {
	idle := &kcdata.Task{ID: 0, Name: "swapper", HasLinux: true, Linux: kcdata.LinuxTask{Present: kcdata.TaskIsKernel}}
	w.s.Tasks = append(w.s.Tasks, idle)
	for n := range w.s.CPUs {
		th := w.thread(idle, "swapper/0", 0, 0, "intel_idle", "cpuidle_enter_state", "do_idle", "cpu_startup_entry")
		th.ID = kcdata.IdleThreadID(uint32(n))
		th.Linux.Present |= kcdata.ThreadIsIdle
	}
	w.kthread(2, "kthreadd", kcdata.StateInterruptible, "__schedule", "schedule", "kthreadd", "ret_from_fork")
	for i := range uint32(12) {
		w.kthread(10+i, "kworker/0:1", kcdata.StateUninterruptible|kcdata.StateNoload, "__schedule", "schedule", "worker_thread", "kthread", "ret_from_fork")
	}
	w.kthread(30, "rcu_preempt", kcdata.StateUninterruptible|kcdata.StateNoload, "__schedule", "schedule", "rcu_gp_kthread", "kthread", "ret_from_fork")
	for i := range uint32(len(w.s.CPUs)) {
		w.kthread(31+i, "migration/0", kcdata.StateInterruptible, "__schedule", "schedule", "smpboot_thread_fn", "kthread", "ret_from_fork")
	}
	init := w.task(1, "systemd")
	init.Linux.UID, init.Linux.Ppid = 0, 0
	init.Cmdline, init.Cgroup = []string{"/sbin/init"}, "/init.scope"
	in(w.thread(init, "systemd", kcdata.StateInterruptible, 2*second, "__schedule", "schedule", "ep_poll", "do_epoll_wait", "do_syscall_64"), 232)
	self := w.task(4900, "stackshot")
	self.Linux.Present |= kcdata.TaskIsSelf
	for range 3 {
		w.thread(self, "stackshot", kcdata.StateInterruptible, second, "__schedule", "schedule", "pipe_read").Linux.Present |= kcdata.ThreadIsSelf
	}
}
