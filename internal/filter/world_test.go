package filter

import (
	"fmt"
	"math/rand/v2"

	"stackshot/internal/model"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// plain is a thread as the plain evaluator sees it: the values of each field, told by whoever
// made the thread. A field without values is not in the file.
type plain struct {
	texts   map[string][]string
	numbers map[string]uint64
}

// world is a snapshot with a verdict, and its threads as plain values.
type world struct {
	r       *rand.Rand
	s       *kcdata.Snapshot
	v       *waitgraph.Verdict
	threads map[*kcdata.Thread]*plain
	strs    []byte
	symbols []kcdata.LinuxSymbol
	kernel  map[uint64][2]string // function and module of a kernel address
}

const now = uint64(1e15)

// Texts that nobody would choose, and those that somebody would.
var (
	nasty   = []string{"\x1b[2J", "a b", `it's "so"`, "x*y", `back\slash`, "\u202eevil", "\xff\xfe", "(sd-pam)", "and", "=", "ä"}
	names   = append([]string{"postgres", "kworker/0:1", "kworker/u8:2", "sshd", "java", "C2 CompilerThre"}, nasty...)
	funcs   = append([]string{"ext4_sync_file", "ext4_file_write_iter", "mutex_lock", "schedule", "do_syscall_64", "std::vector<int>::push_back(int&&)"}, nasty...)
	mods    = append([]string{"ext4", "nfs", "libc.so.6", "jbd2"}, nasty...)
	cgroups = append([]string{"/system.slice/ssh.service", "/user.slice", "/"}, nasty...)
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func randomWorld(seed uint64) *world {
	w := &world{
		r: rand.New(rand.NewPCG(seed, 15)), threads: map[*kcdata.Thread]*plain{}, strs: []byte{0}, kernel: map[uint64][2]string{},
		s: &kcdata.Snapshot{HasMachine: true, CPUs: []kcdata.LinuxCPU{{CPU: 0, RqClock: now, RqClockAt: now}}},
		v: &waitgraph.Verdict{Waits: &waits.Waits{Of: map[*kcdata.Thread]*waits.Wait{}}},
	}
	for i, f := range funcs {
		addr := 0xffffffff81000000 + uint64(i)*0x1000
		module := ""
		if w.r.IntN(2) == 0 {
			module = pick(w.r, mods)
		}
		w.kernel[addr] = [2]string{f, module}
		w.symbols = append(w.symbols, kcdata.LinuxSymbol{Addr: addr, Name: w.str(f), Module: w.str(module)})
	}
	w.s.Symbols = kcdata.NewSymbolTable(w.symbols, w.strs)
	for range w.r.IntN(8) {
		w.task()
	}
	return w
}

func (w *world) str(s string) uint32 {
	if s == "" {
		return 0
	}
	at := uint32(len(w.strs))
	w.strs = append(append(w.strs, s...), 0)
	return at
}

func (w *world) task() {
	r := w.r
	t := &kcdata.Task{ID: uint64(r.IntN(20)), Name: pick(r, names), HasLinux: true}
	common := plain{texts: map[string][]string{Name: {t.Name}}, numbers: map[string]uint64{Pid: t.ID}}
	if r.IntN(3) > 0 {
		t.Linux.Present |= kcdata.TaskHasIDs
		t.Linux.UID = uint32(r.IntN(3))
		common.numbers[UID] = uint64(t.Linux.UID)
	}
	if r.IntN(2) == 0 {
		t.ExePath = "/usr/bin/" + pick(r, []string{"systemd-journald", "java", "x*y"})
		common.texts[Name] = append(common.texts[Name], t.ExePath[len("/usr/bin/"):])
		if r.IntN(2) == 0 {
			t.ExePath += " (deleted)"
		}
	}
	if r.IntN(4) > 0 {
		t.Cgroup = pick(r, cgroups)
		common.texts[Cgroup] = []string{t.Cgroup}
		if t.Cgroup[0] == '/' && len(t.Cgroup) > 1 {
			common.texts[Cgroup] = append(common.texts[Cgroup], t.Cgroup[1:])
		}
	}
	user := w.userSide(t)
	n := r.IntN(4)
	common.numbers[Threads] = uint64(n)
	if r.IntN(3) == 0 {
		t.Linux.Present |= kcdata.TaskHasThreadCount
		t.Linux.NrThreads = uint32(n + r.IntN(3))
		common.numbers[Threads] = uint64(t.Linux.NrThreads)
	}
	w.s.Tasks = append(w.s.Tasks, t)
	for range n {
		w.thread(t, common, user)
	}
}

// userSide gives a task functions in user space, by address: name and module.
func (w *world) userSide(t *kcdata.Task) map[uint64][][2]string {
	strs, out := []byte{0}, map[uint64][][2]string{}
	var records []kcdata.LinuxUserSymbol
	put := func(s string) uint32 {
		at := uint32(len(strs))
		strs = append(append(strs, s...), 0)
		return at
	}
	t.Mappings = []kcdata.Mapping{{LinuxMapping: kcdata.LinuxMapping{Start: 0x10000, End: 0x20000}, Path: "/lib/libc.so.6"}}
	for i := range uint64(6) {
		addr := 0x10100 + i*0x100
		out[addr] = [][2]string{{"", "libc.so.6"}} // no name: the mapping tells the module
		if i == 0 {
			continue
		}
		out[addr] = nil
		for range 1 + w.r.IntN(2) { // inlined into each other
			name, module := pick(w.r, funcs), pick(w.r, []string{"/opt/app", "[jit]"})
			records = append(records, kcdata.LinuxUserSymbol{Addr: addr, Name: put(name), Module: put(module), Flags: kcdata.UserSymbolReturn | kcdata.UserSymbolExact})
			out[addr] = append(out[addr], [2]string{name, map[string]string{"/opt/app": "app", "[jit]": "jit"}[module]})
		}
	}
	t.UserSymbols = kcdata.NewUserSymbolTable(records, strs)
	return out
}

// states are what LinuxThread says, and the values of the field state for it.
var states = []struct {
	state, exit uint32
	onCPU       uint32
	values      []string
}{
	{0, 0, 1, []string{"R", "running"}},
	{kcdata.StateUninterruptible, 0, 1, []string{"R", "running"}},
	{0, 0, 0, []string{"R", "runnable"}},
	{kcdata.StateInterruptible, 0, 0, []string{"S", "sleeping"}},
	{kcdata.StateUninterruptible, 0, 0, []string{"D", "blocked"}},
	{kcdata.StateUninterruptible | kcdata.StateNoload, 0, 0, []string{"I", "idle"}},
	{kcdata.StateStopped, 0, 0, []string{"T", "stopped"}},
	{kcdata.StateTraced, 0, 0, []string{"t", "stopped", "traced"}},
	{kcdata.StateFrozen, 0, 0, []string{"stopped", "frozen"}},
	{kcdata.StateParked, 0, 0, []string{"P", "parked"}},
	{0, kcdata.ExitZombie, 0, []string{"Z", "zombie"}},
	{0, kcdata.ExitDead, 0, []string{"X", "zombie"}},
}

func (w *world) thread(t *kcdata.Task, common plain, user map[uint64][][2]string) {
	r := w.r
	th := &kcdata.Thread{ID: uint64(r.IntN(40)), Name: pick(r, append(names, "")), HasLinux: true}
	st := pick(r, states)
	p := &plain{texts: map[string][]string{State: st.values}, numbers: map[string]uint64{Tid: th.ID}}
	for k, v := range common.texts {
		p.texts[k] = append(p.texts[k], v...)
	}
	for k, v := range common.numbers {
		p.numbers[k] = v
	}
	p.texts[Name] = append(p.texts[Name], th.Name)
	th.Linux = kcdata.LinuxThread{Present: kcdata.ThreadHasOnCPU, State: st.state, ExitState: st.exit, OnCPU: st.onCPU, CPU: uint32(r.IntN(3))}
	p.numbers[CPU] = uint64(th.Linux.CPU)
	if r.IntN(2) == 0 {
		age := uint64(r.IntN(30)) * 1e9
		th.Linux.Present |= kcdata.ThreadHasSchedInfo
		th.Linux.LastArrival = now - age
		if st.onCPU == 1 || st.values[0] == "S" || st.values[0] == "D" || st.values[0] == "I" || st.values[0] == "T" || st.values[0] == "t" || st.values[0] == "P" || st.values[1] == "frozen" {
			p.numbers[Age] = age
		}
	}
	if r.IntN(8) == 0 {
		th.Kernel, th.Wchan = nil, pick(r, funcs)
		p.texts[Func] = append(p.texts[Func], th.Wchan)
	} else {
		for range r.IntN(5) {
			a := 0xffffffff81000000 + uint64(r.IntN(len(funcs)))*0x1000
			th.Kernel = append(th.Kernel, a)
			p.texts[Func] = append(p.texts[Func], w.kernel[a][0])
			p.texts[Module] = append(p.texts[Module], w.kernel[a][1])
		}
	}
	for range r.IntN(3) {
		a := 0x10100 + uint64(r.IntN(6))*0x100
		th.User = append(th.User, a)
		for _, f := range user[a] {
			p.texts[Func] = append(p.texts[Func], f[0])
			p.texts[Module] = append(p.texts[Module], f[1])
		}
	}
	t.Threads = append(t.Threads, th)
	w.threads[th] = p
	if r.IntN(2) == 0 {
		w.wait(t, th, p)
	}
}

func (w *world) wait(t *kcdata.Task, th *kcdata.Thread, p *plain) {
	x := &waits.Wait{Task: t, Thread: th, State: model.StateOf(th), Kind: waits.Mutex}
	switch id := uint64(w.r.IntN(3)); {
	case id > 0:
		x.Resource = waits.Resource{Kind: waits.Mutex, ID: id}
		p.texts[Wait] = []string{"mutex", fmt.Sprintf("the kernel mutex 0x%x", id), fmt.Sprintf("0x%x", id)}
	case w.r.IntN(2) == 0:
		x.Kind = waits.Timer
		p.texts[Wait] = []string{"timer", "a timer"}
	default:
		x.Kind = waits.FUSE
		x.Evidence = waits.File
		x.File = &waits.OpenFile{File: &kcdata.LinuxFile{Kind: kcdata.FileRegular, Op: kcdata.FileOpRead}, Mount: &kcdata.LinuxMount{}, Device: "sda1"}
		point := pick(w.r, []string{"/mnt/a", "/mnt/a*b"})
		copy(x.File.Mount.Point[:], point)
		copy(x.File.Mount.FSType[:], "fuse.sshfs")
		p.texts[Wait] = []string{"fuse", point + " (fuse.sshfs, on sda1)", "sda1", point, "fuse.sshfs"}
	}
	w.v.Waits.Of[th] = x
	w.v.Waits.All = append(w.v.Waits.All, x)
}
