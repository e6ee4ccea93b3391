package waits

import (
	"strings"
	"testing"

	"stackshot/kcdata"
)

// world builds snapshots for the tests. now is what each runqueue clock reads.
type world struct {
	s    *kcdata.Snapshot
	strs []byte
	syms []kcdata.LinuxSymbol
	at   map[string]uint64
}

const (
	second = uint64(1e9)
	now    = 1000 * second
)

func newWorld() *world {
	return &world{strs: []byte{0}, at: map[string]uint64{}, s: &kcdata.Snapshot{
		HasMachine: true, HasCapture: true, Arch: "x86_64", Engine: "trap", Isolation: "irqoff",
		Machine:    kcdata.LinuxMachine{PidNSIsFirst: 1},
		WaitTaken:  &kcdata.LinuxWaitTaken{Sources: 1<<7 - 1},
		FilesTaken: &kcdata.LinuxFilesTaken{Sources: 1<<10 - 1 - kcdata.FilesHasProc},
		CPUs:       []kcdata.LinuxCPU{{RqClock: now, RqClockAt: now}, {CPU: 1, RqClock: now, RqClockAt: now}},
	}}
}

// start is the start_boottime of every thread with this number.
func start(tid uint32) uint64 { return uint64(tid) * 1000 }

// task adds a process with one thread, the child of ppid.
func (w *world) task(pid, ppid uint32, state uint32, frames ...string) *kcdata.Thread {
	t := &kcdata.Task{ID: uint64(pid), HasLinux: true, Linux: kcdata.LinuxTask{
		Present: kcdata.TaskHasIDs, Tgid: pid, Ppid: ppid, Pgid: pid,
	}}
	w.s.Tasks = append(w.s.Tasks, t)
	return w.thread(t, pid, state, frames...)
}

func (w *world) thread(t *kcdata.Task, tid uint32, state uint32, frames ...string) *kcdata.Thread {
	th := &kcdata.Thread{ID: uint64(tid), HasLinux: true, Kernel: w.stack(frames)}
	th.Linux = kcdata.LinuxThread{
		Present: kcdata.ThreadHasSchedInfo | kcdata.ThreadHasOnCPU | kcdata.ThreadHasStart,
		Tid:     tid, Tgid: t.Linux.Tgid, State: state, StartBoottime: start(tid), LastArrival: now - 5*second,
	}
	t.Threads = append(t.Threads, th)
	return th
}

func (w *world) stack(frames []string) (out []uint64) {
	for _, f := range frames {
		a, ok := w.at[f]
		if !ok {
			a = 0xffffffff81000000 + uint64(len(w.at))*0x100
			w.at[f] = a
			w.syms = append(w.syms, kcdata.LinuxSymbol{Addr: a, Name: uint32(len(w.strs))})
			w.strs = append(append(w.strs, f...), 0)
		}
		out = append(out, a)
	}
	return out
}

// last is the task that was added last.
func (w *world) last() *kcdata.Task { return w.s.Tasks[len(w.s.Tasks)-1] }

// of finds the waits.
func (w *world) of() *Waits {
	w.s.Symbols = kcdata.NewSymbolTable(w.syms, w.strs)
	return Of(w.s)
}

// owners writes owners as "relation tid", "!" behind one that the file has, "+" behind a dead one.
func owners(w *Wait) string {
	var out []string
	for _, o := range w.Owners {
		s := string(o.Relation) + " " + itoa(o.Tid)
		if o.Thread != nil {
			s += "!"
		}
		if o.Dead {
			s += "+"
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func itoa(n uint32) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

const (
	asleep  = kcdata.StateInterruptible
	blocked = kcdata.StateUninterruptible
	killed  = blocked | kcdata.StateWakekill
)

// wantNote fails unless one of w's notes holds part; "": there is no note at all.
func wantNote(t *testing.T, name string, w *Wait, part string) {
	t.Helper()
	all := strings.Join(w.Notes, "; ")
	if part == "" && all != "" || !strings.Contains(all, part) {
		t.Errorf("%s: notes %q, want %q", name, all, part)
	}
}
