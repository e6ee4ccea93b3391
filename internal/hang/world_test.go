package hang

import (
	"fmt"
	"slices"
	"sync"

	"stackshot/internal/model"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// world builds snapshots with verdicts by hand: what is shown of a verdict is tested here, not
// whether it is right.
type world struct {
	s *kcdata.Snapshot
	v *waitgraph.Verdict
}

const second = uint64(1e9)

// of are the threads of some tasks.
func (w *world) of(pids ...int) map[*kcdata.Thread]bool {
	only := map[*kcdata.Thread]bool{}
	for _, t := range w.s.Tasks {
		for _, th := range t.Threads {
			if slices.Contains(pids, int(t.ID)) {
				only[th] = true
			}
		}
	}
	return only
}

// everythingOnce is always the same world: threads are chosen by their addresses.
var everythingOnce = sync.OnceValue(everything)

func newWorld() *world {
	w := &world{s: &kcdata.Snapshot{
		HasMachine: true, HasCapture: true, Hostname: "db7", Release: "6.18.44", Arch: "x86_64", Engine: "trap", Isolation: "irqoff",
		WaitTaken: &kcdata.LinuxWaitTaken{}, CPUs: []kcdata.LinuxCPU{{Flags: kcdata.CPUStopped | kcdata.CPUWorked}},
	}}
	w.s.Machine = kcdata.LinuxMachine{RealtimeNs: 1_795_000_000 * second, BoottimeNs: 9000 * second, PidNSIsFirst: 1}
	w.s.Capture = kcdata.LinuxCapture{StoppedNs: 443_000, WindowNs: 353_000, Tries: 1}
	w.v = &waitgraph.Verdict{Waits: &waits.Waits{Of: map[*kcdata.Thread]*waits.Wait{}, OneInstant: true}}
	return w
}

func (w *world) task(pid uint64, name string) *kcdata.Task {
	t := &kcdata.Task{ID: pid, Name: name, HasSnapshot: true, HasLinux: true}
	w.s.Tasks = append(w.s.Tasks, t)
	return t
}

func thread(t *kcdata.Task, tid uint64, name string) *kcdata.Thread {
	th := &kcdata.Thread{ID: tid, Name: name, HasSnapshot: true, HasLinux: true}
	th.Linux.State = kcdata.StateInterruptible
	t.Threads = append(t.Threads, th)
	return th
}

// wait makes a thread wait for so many seconds (0: not known).
func (w *world) wait(t *kcdata.Task, th *kcdata.Thread, kind waits.Kind, id, seconds uint64, owners ...waits.Owner) *waits.Wait {
	x := &waits.Wait{
		Task: t, Thread: th, State: model.StateOf(th), Kind: kind, Owners: owners,
		Age: model.Age{Ns: seconds * second, Known: seconds > 0}, Evidence: waits.Word, Confidence: waits.Sure, When: waits.Window,
	}
	if id != 0 {
		x.Resource = waits.Resource{Kind: kind, ID: id}
		if kind == waits.UserMutex {
			x.Resource.Task = t.ID
		}
	}
	w.v.Waits.All = append(w.v.Waits.All, x)
	w.v.Waits.Of[th] = x
	return x
}

func owner(t *kcdata.Task, th *kcdata.Thread, r waits.Relation) waits.Owner {
	return waits.Owner{Task: t, Thread: th, Tid: uint32(th.ID), Pid: uint32(t.ID), Relation: r}
}

// story is a machine with its verdict, and what is told of it: by golden files, or by words, each once.
type story struct {
	name   string
	build  func() *world
	o      Options
	golden string // names of forms
	says   []string
}

var stories = []story{
	{"everything", everything, Options{File: "db7.kcdata.zst"}, "txt", nil},
	{"everything_pid", everythingOnce, Options{Only: everythingOnce().of(900)}, "json dot", nil},
	{"ends", ends, Options{File: "db7.kcdata.zst"}, "txt json dot", nil},
	{"healthy", healthy, Options{NotSymbolized: []string{"/mnt/a: late", "/mnt/b: late", "c\x1b: late", "d: late", "e: late"}}, "", []string{
		"\nNothing hangs: no deadlock, nobody whom others wait for too long, no convoy.\n\n== WAITING: 2 threads\n", "  a timer; the longest, for up to 20.0 s: cron [701]\n",
		"\n== WHAT THIS FILE CANNOT TELL\n  what threads wait for whose functions have no names: files not symbolized: /mnt/a: late; /mnt/b: late; c\\x1b: late; d: late; and 1 more\n",
	}},
	{"not_one_instant", notOneInstant, Options{}, "", []string{
		"\n!! nothing was stopped: ", "\nProbably a deadlock of 2 threads: app [812] tid 813 ", "\n== 1. Probably a deadlock of 2 threads\n",
		"  \"Probably\": the file is not of one instant, so the waits may be of different moments.\n  \"Probably\": not each wait of the cycle is sure (1 of 2).\n",
		"holds, for up to 3m 10s (by the words in its memory, probably, nothing was stopped)\n", "\n  whether the waits were at the same moment: nothing was stopped\n",
	}},
	{"redacted", redacted, Options{}, "", []string{"\nDeadlock of 2 threads: app [812] tid 813 \"loader\" waits for the mutex number 3 that ", "client [900] waits for the kernel rwsem number 1 (to read), for up to 40.0 s (by the kernel's own field); readers hold it too\n"}},
	{"unrecorded", unrecorded, Options{}, "json", []string{"\nNothing is known to hang: this file does not say what threads wait for.\n", "\n  who has the locks: the file has no records of waits (--wait off)\n"}},
	{"ends_redacted", endsRedacted, Options{}, "", []string{
		"\n    ls [200] waits for its file system (fuse.sshfs), for up to 55.0 s (read after the release)\n", "    waits for data from the TCP socket number 48, whose other end is outside this file, for up to 1m 00s (read after the release)\n",
		"    curl [410] waits for one of 2 descriptors, among them the answer of web [400] over the TCP socket number 80, for up to 9.0 s (read after the release, probably)\n",
	}},
	{"nasty", nasty, Options{File: "x\x1b[2J"}, "", []string{"\n== WHAT THIS FILE CANNOT TELL\n  \\x1b[2J\"\\\\x0a\\xe2\\x80\\xaeexe\\xff];digraph{\n"}},
}

// abba: two threads of a program deadlock by two mutexes; fourteen wait behind them, some of
// them behind a thread that waits itself.
func abba() *world {
	w := newWorld()
	t := w.task(812, "app")
	main := thread(t, 812, "app")
	loader, worker := thread(t, 813, "loader"), thread(t, 814, "worker")
	w.wait(t, main, waits.UserJoin, 0, 200, owner(t, loader, waits.Joined))
	a := w.wait(t, loader, waits.UserMutex, 0x55d0c0, 190, owner(t, worker, waits.Holds))
	b := w.wait(t, worker, waits.UserMutex, 0x55d100, 191, owner(t, loader, waits.Holds))
	worker.NS = []kcdata.LinuxThreadNS{{Inode: 4026532201, Tid: 7}}
	d := &waitgraph.Deadlock{Confidence: waits.Sure, Cycle: []*waits.Wait{a, b}, Part: []*waits.Wait{b, a}}
	d.Behind = append(d.Behind, w.v.Waits.Of[main])
	for i := range uint64(10) {
		d.Behind = append(d.Behind, w.wait(t, thread(t, 820+i, "pool"), waits.UserMutex, 0x55d100, 100-i, owner(t, loader, waits.Holds)))
	}
	client := w.task(900, "client")
	for i := range uint64(3) {
		x := w.wait(client, thread(client, 900+i, "client"), waits.RWSemRead, 0xffff888001, 40, owner(t, t.Threads[3], waits.Holds))
		x.Evidence, x.Notes = waits.Field, []string{"readers hold it too"}
		d.Behind = append(d.Behind, x)
	}
	d.Tree = treeOf(d.Behind)
	w.v.Deadlocks = append(w.v.Deadlocks, d)
	return w
}

// treeOf is the tree of waits that stand behind those whom they wait for.
func treeOf(list []*waits.Wait) (tree []waitgraph.Branch) {
	var add func(up, depth int, below func(x *waits.Wait) bool)
	in := map[*kcdata.Thread]bool{}
	for _, x := range list {
		in[x.Thread] = true
	}
	add = func(up, depth int, below func(x *waits.Wait) bool) {
		for _, x := range list {
			if below(x) {
				at := len(tree)
				tree = append(tree, waitgraph.Branch{Wait: x, Owner: x.Owners[0], Up: up, Depth: depth, Victim: true})
				add(at, depth+1, func(y *waits.Wait) bool { return y.Owners[0].Thread == x.Thread })
			}
		}
	}
	add(-1, 0, func(x *waits.Wait) bool { return x.Owners[0].Thread == nil || !in[x.Owners[0].Thread] })
	return tree
}

// healthy: threads wait, and nothing hangs.
func healthy() *world {
	w := newWorld()
	t := w.task(700, "sshd")
	w.wait(t, thread(t, 700, "sshd"), waits.Poll, 0, 4000).Evidence = waits.Stack
	t = w.task(701, "cron")
	x := w.wait(t, thread(t, 701, "cron"), waits.Timer, 0, 20)
	x.Evidence, x.Timed = waits.Stack, true
	return w
}

// everything has each kind of finding and each reason.
func everything() *world {
	w := abba()
	mount := w.task(600, "cp")
	x := w.wait(mount, thread(mount, 600, "cp"), waits.FileSystem, 0, 7000)
	x.Thread.Linux.State, x.Evidence = kcdata.StateUninterruptible, waits.Stack
	x.State = model.StateOf(x.Thread)
	own := owner(mount, x.Thread, "")
	stuck := w.task(601, "ls")
	victim := w.wait(stuck, thread(stuck, 601, "ls"), waits.Mutex, 0xffff888100, 6000, owner(mount, x.Thread, waits.Holds))
	victim.Evidence = waits.Scan
	w.v.Culprits = append(w.v.Culprits, &waitgraph.Culprit{Owner: own, Wait: x, Reason: waitgraph.InD, Victims: []*waits.Wait{victim}, Tree: treeOf([]*waits.Wait{victim})})
	for i, reason := range []waitgraph.Reason{
		waitgraph.Running, waitgraph.Runnable, waitgraph.Stopped, waitgraph.Traced, waitgraph.Frozen, waitgraph.Dead, waitgraph.Asleep,
		waitgraph.Outside, waitgraph.MissedCPU,
	} {
		t := w.task(uint64(610+10*i), fmt.Sprintf("holder%d", i))
		holder := thread(t, t.ID, t.Name)
		c := &waitgraph.Culprit{Owner: owner(t, holder, ""), Reason: reason}
		o := owner(t, holder, waits.Holds)
		switch reason {
		case waitgraph.Stopped:
			c.Wait = w.wait(t, holder, waits.Stopped, 0, 50)
		case waitgraph.Runnable:
			c.Wait = w.wait(t, holder, waits.CPU, 0, 3)
		case waitgraph.Asleep:
			c.Wait = w.wait(t, holder, waits.Userfault, 0, 60)
		case waitgraph.Dead:
			o.Dead = true
		case waitgraph.Outside:
			o.Task, o.Thread = nil, nil
			c.Owner.Task, c.Owner.Thread = nil, nil
		}
		for n := range uint64(2) {
			y := w.wait(t, thread(t, t.ID+1+n, "waiter"), waits.UserPIMutex, 0x7000+t.ID, 30, o)
			if i%2 == 1 {
				y.Confidence = waits.Likely
			}
			c.Victims = append(c.Victims, y)
		}
		c.Tree = treeOf(c.Victims)
		w.v.Culprits = append(w.v.Culprits, c)
	}
	pg := w.task(990, "postgres")
	o := owner(pg, thread(pg, 990, "postgres"), waits.Holds)
	w.wait(pg, o.Thread, waits.UserSemaphore, 0, 95)
	convoy := &waitgraph.Convoy{Resource: waits.Resource{Kind: waits.RWSemWrite, ID: 0xffff888200}, Owners: []waits.Owner{o}}
	for i := range uint64(50) {
		convoy.Waiters = append(convoy.Waiters, w.wait(pg, thread(pg, 1000+i, "backend"), waits.RWSemWrite, 0xffff888200, 90-i, o))
	}
	w.v.Convoys = append(w.v.Convoys, convoy)
	w.v.Unaged = 3
	w.v.Culprits[1].Shared = w.v.Culprits[2].Victims
	w.v.Starved = w.v.Waits.All[:2]
	for i := range uint64(5) { // pools of two
		web := w.task(3000+i, "web")
		o := owner(web, thread(web, 3000+i, "web"), waits.Holds)
		x := w.wait(web, thread(web, 3010+i, "web"), waits.UserMutex, 0x55d200, 100-i, o)
		w.v.Pools = append(w.v.Pools, &waitgraph.Convoy{Resource: x.Resource, Waiters: []*waits.Wait{x}, Owners: []waits.Owner{o}})
	}
	return w
}

// notOneInstant: the file is of pull without SCHED_FIFO; nothing is sure.
func notOneInstant() *world {
	w := abba()
	w.s.Isolation, w.v.Waits.OneInstant = "none", false
	w.v.Waits.Limits = []string{"whether the waits were at the same moment: nothing was stopped"}
	for _, x := range w.v.Waits.All {
		x.When = waits.NotAtOne
	}
	w.v.Deadlocks[0].Confidence = waits.Likely
	w.v.Deadlocks[0].Cycle[0].Confidence = waits.Likely
	return w
}

// redacted: locks have numbers instead of addresses.
func redacted() *world {
	w := abba()
	w.s.Machine.Redacted = 1
	for _, x := range w.v.Waits.All {
		x.Resource.ID %= 16
		if x.Resource.ID == 0 && x.Resource.Kind != "" {
			x.Resource.ID = 3
		}
	}
	return w
}

// unrecorded: a file of --wait off, or of an older program.
func unrecorded() *world {
	w := healthy()
	w.v.Waits.Unrecorded = true
	w.v.Waits.Limits = []string{"who has the locks: the file has no records of waits (--wait off)"}
	return w
}

// nasty: every name of the machine tries to be something else.
func nasty() *world {
	const evil = "\x1b[2J\"\\\n\u202eexe\xff];digraph{"
	w := abba()
	w.s.Hostname = evil
	for _, t := range w.s.Tasks {
		t.Name = evil
		for _, th := range t.Threads {
			th.Name += evil
		}
	}
	for _, x := range w.v.Waits.All {
		x.Notes = []string{evil, evil, evil, evil, evil}
	}
	w.v.Waits.Limits = []string{evil}
	return w
}

// process is t as an owner.
func process(t *kcdata.Task, r waits.Relation, owes bool) waits.Owner {
	o := owner(t, t.Threads[0], r)
	o.Whole, o.Owes = true, owes
	return o
}

// at says at which file a wait is.
func at(x *waits.Wait, kind, op, flags uint32) *waits.OpenFile {
	x.File = &waits.OpenFile{File: &kcdata.LinuxFile{Kind: kind, Op: op, Flags: flags, Fd: 5, Inode: 4711, Dev: 8<<32 | 2}, Of: 1}
	x.Evidence = waits.After
	return x.File
}

// single is a process with one thread.
func (w *world) single(pid uint64, name string) *kcdata.Task {
	t := w.task(pid, name)
	thread(t, pid, name)
	return t
}

// inState puts a thread into a state before it waits.
func inState(t *kcdata.Task, state uint32) *kcdata.Thread {
	t.Threads[0].Linux.State = state
	return t.Threads[0]
}

// ends: a request cycle over pipe and socket; a stalled FUSE server with its victims in D; a
// stopped holder of a flock; a busy server; and threads that are at rest. The verdict is waitgraph's.
func ends() *world {
	w := newWorld()
	client, db := w.single(100, "client"), w.single(7, "db")
	helper := thread(db, 8, "helper")
	db.Threads[0].NS = []kcdata.LinuxThreadNS{{Inode: 4026532201, Tid: 1}}
	x := w.wait(client, client.Threads[0], waits.Socket, 0xffff888010, 30, process(db, waits.OtherEnd, true))
	at(x, kcdata.FileSocket, kcdata.FileOpRead, kcdata.FileToRead)
	x.File.Socket, x.File.Unread = &kcdata.LinuxSocket{Family: 1, Kind: 1, BytesOut: 64}, 64
	at(w.wait(db, db.Threads[0], waits.Pipe, 0xffff888020, 29, process(client, waits.OtherEnd, false)), kcdata.FilePipe, kcdata.FileOpRead, kcdata.FileToRead|kcdata.FileEmpty)
	w.wait(db, helper, waits.UserJoin, 0, 28, owner(db, db.Threads[0], waits.Joined))

	sshfs := w.single(911, "sshfs")
	remote := w.wait(sshfs, sshfs.Threads[0], waits.Socket, 0xffff888030, 60)
	at(remote, kcdata.FileSocket, kcdata.FileOpRead, kcdata.FileToRead)
	remote.File.Socket, remote.File.Says, remote.File.Remote = &kcdata.LinuxSocket{Family: 2, Kind: 1, LocalPort: 40000, PeerPort: 22}, waits.Elsewhere, "192.0.2.7:22"
	mount := &kcdata.LinuxMount{Dev: 45}
	copy(mount.Point[:], "/mnt/backup")
	copy(mount.FSType[:], "fuse.sshfs")
	copy(mount.Source[:], "backup@store:/srv")
	for i := range uint64(3) {
		ls := w.single(200+i, "ls")
		inState(ls, kcdata.StateUninterruptible)
		x := w.wait(ls, ls.Threads[0], waits.FUSE, 45, 55-i, process(sshfs, waits.Server, true))
		at(x, kcdata.FileRegular, kcdata.FileOpRead, 0).Mount = mount
	}

	holder := w.single(300, "cron")
	inState(holder, kcdata.StateStopped)
	w.wait(holder, holder.Threads[0], waits.Stopped, 0, 80)
	for i := range uint64(5) {
		job := w.single(301+i, "job")
		x := w.wait(job, job.Threads[0], waits.FileLock, 0xffff888040, 70-i, process(holder, waits.Holds, true))
		at(x, kcdata.FileRegular, kcdata.FileOpFlock, 0)
	}

	web := w.single(400, "web")
	thread(web, 401, "loop").Linux = kcdata.LinuxThread{Present: kcdata.ThreadHasOnCPU, OnCPU: 1}
	web.Threads[0].Linux = kcdata.LinuxThread{Present: kcdata.ThreadHasOnCPU, OnCPU: 1}
	curl := w.single(410, "curl")
	x = w.wait(curl, curl.Threads[0], waits.Poll, 0xffff888050, 9, process(web, waits.OtherEnd, true))
	at(x, kcdata.FileSocket, kcdata.FileOpPoll, kcdata.FileToRead|kcdata.FilePolled)
	x.File.Socket, x.File.Of, x.File.Others, x.File.Unread, x.Confidence = &kcdata.LinuxSocket{Family: 2, Kind: 1, LocalPort: 5000, PeerPort: 80}, 2, 1, 120, waits.Likely

	idle := w.single(500, "idle")
	x = w.wait(idle, idle.Threads[0], waits.Socket, 0xffff888060, 4000)
	at(x, kcdata.FileSocket, kcdata.FileOpAccept, kcdata.FileToRead).Says = waits.Serves
	x.File.Socket = &kcdata.LinuxSocket{Family: 10, Kind: 1, Flags: kcdata.SocketListens, LocalPort: 80}
	w.v = waitgraph.Judge(w.v.Waits, waitgraph.Options{})
	return w
}

// endsRedacted has numbers, and nothing else of the machine.
func endsRedacted() *world {
	w := ends()
	w.s.Machine.Redacted = 1
	for i, x := range w.v.Waits.All {
		if x.Resource.ID != 0 {
			x.Resource.ID &= 0xff
		}
		if x.File != nil {
			x.File.Remote = ""
			if s := x.File.Socket; s != nil {
				s.LocalPort, s.PeerPort = 0, 0
			}
			if m := x.File.Mount; m != nil {
				*m = kcdata.LinuxMount{Dev: m.Dev, FSType: m.FSType}
			}
		}
		w.v.Waits.All[i].State = model.StateOf(x.Thread)
	}
	return w
}
