package waits

import (
	"testing"

	"stackshot/kcdata"
)

var (
	inPipe  = []string{"pipe_read", "vfs_read", "ksys_read"}
	inFutex = []string{"futex_do_wait", "futex_wait", "do_futex"}
	inWait  = []string{"do_wait", "kernel_wait4"}
)

// What the kernel's own memory says comes first; an owner needs its start time; and a scan is
// sure only with a verified owner.
func TestKernelLocks(t *testing.T) {
	const known = kcdata.WaitOwned
	for _, c := range []struct {
		name   string
		r      kcdata.LinuxWait
		kind   Kind
		res    Kind
		ev     Evidence
		conf   Confidence
		owners string
		note   string
	}{
		{"field", kcdata.LinuxWait{Flags: kcdata.WaitField | known, Kind: kcdata.LockMutex, Lock: 7, OwnerTid: 20, OwnerStart: start(20)}, Mutex, Mutex, Field, Sure, "holds 20!", ""},
		{"scan", kcdata.LinuxWait{Flags: kcdata.WaitScan | kcdata.WaitScanned | known, Scan: kcdata.ScanFound, Kind: kcdata.LockRWSemWrite, Lock: 7, OwnerTid: 20, OwnerStart: start(20)}, RWSemWrite, RWSem, Scan, Sure, "holds 20!", ""},
		{"scan, owner not in the file", kcdata.LinuxWait{Flags: kcdata.WaitScan | known, Scan: kcdata.ScanFound, Kind: kcdata.LockMutex, Lock: 7, OwnerTid: 99, OwnerStart: 5}, Mutex, Mutex, Scan, Likely, "holds 99", ""},
		{"scan, readers", kcdata.LinuxWait{Flags: kcdata.WaitScan | kcdata.WaitReaders, Scan: kcdata.ScanFound, Kind: kcdata.LockRWSem, Lock: 7}, RWSem, RWSem, Scan, Likely, "", "readers"},
		{"readers", kcdata.LinuxWait{Flags: kcdata.WaitField | kcdata.WaitReaders, Kind: kcdata.LockRWSemWrite, Lock: 7, OwnerTid: 20, OwnerStart: start(20)}, RWSemWrite, RWSem, Field, Sure, "", "readers"},
		{"reader", kcdata.LinuxWait{Flags: kcdata.WaitField | known, Kind: kcdata.LockRWSemRead, Lock: 7, OwnerTid: 20, OwnerStart: start(20)}, RWSemRead, RWSem, Field, Sure, "holds 20!", ""},
		{"free", kcdata.LinuxWait{Flags: kcdata.WaitField | kcdata.WaitFree, Kind: kcdata.LockMutex, Lock: 7}, Mutex, Mutex, Field, Sure, "", "no owner"},
		{"bad owner", kcdata.LinuxWait{Flags: kcdata.WaitField | kcdata.WaitBadOwner, Kind: kcdata.LockMutex, Lock: 7}, Mutex, Mutex, Field, Sure, "", "does not lead"},
		{"semaphore", kcdata.LinuxWait{Flags: kcdata.WaitField | kcdata.WaitLastHolder | known, Kind: kcdata.LockSemaphore, Lock: 7, OwnerTid: 20, OwnerStart: start(20)}, Semaphore, Semaphore, Field, Likely, "last 20!", ""},
		{"number used again", kcdata.LinuxWait{Flags: kcdata.WaitField | known, Kind: kcdata.LockMutex, Lock: 7, OwnerTid: 20, OwnerStart: start(20) + 1}, Mutex, Mutex, Field, Sure, "", "not the one"},
		{"outside of the namespace", kcdata.LinuxWait{Flags: kcdata.WaitField | known, Kind: kcdata.LockMutex, Lock: 7}, Mutex, Mutex, Field, Sure, "holds 0", ""},
		{"rt_mutex", kcdata.LinuxWait{Flags: kcdata.WaitPI | known, Lock: 7, OwnerTid: 20, OwnerStart: start(20)}, RTMutex, RTMutex, Field, Sure, "holds 20!", ""},
		{"kind unknown", kcdata.LinuxWait{Flags: kcdata.WaitField, Kind: 77, Lock: 7}, Other, "", Stack, Sure, "", "in D in a function"},
		{"no lock found", kcdata.LinuxWait{Flags: kcdata.WaitScanned, Scan: kcdata.ScanNoRing}, Other, "", Stack, Sure, "", "slow path"},
	} {
		w := newWorld()
		th := w.task(10, 1, blocked, inPipe...)
		th.Wait = &c.r
		w.task(20, 1, asleep, inPipe...)
		got := w.of().Of[th]
		if got.Kind != c.kind || got.Evidence != c.ev || got.Confidence != c.conf || owners(got) != c.owners || got.When != Window || !got.Age.Known {
			t.Errorf("%s: %+v, owners %q", c.name, got, owners(got))
		}
		if want := (Resource{Kind: c.res, ID: 7}); c.res != "" && got.Resource != want || c.res == "" && got.Resource != (Resource{}) {
			t.Errorf("%s: resource %+v", c.name, got.Resource)
		}
		wantNote(t, c.name, got, c.note)
	}
}

// A lock that is taken in fdget_pos is that of a file's position, whoever tells of it; in another
// function it is a mutex.
func TestFilePosition(t *testing.T) {
	record := &kcdata.LinuxWait{Flags: kcdata.WaitField | kcdata.WaitOwned, Kind: kcdata.LockMutex, Lock: 7, OwnerTid: 20, OwnerStart: start(20)}
	for _, c := range []struct {
		leaf   string
		r      *kcdata.LinuxWait
		kind   Kind
		ev     Evidence
		owners string
	}{
		{"fdget_pos", record, FilePosition, Field, "holds 20!"},
		{"__fdget_pos", record, FilePosition, Field, "holds 20!"},
		{"__fdget_pos", nil, FilePosition, Stack, ""},
		{"pipe_read", record, Mutex, Field, "holds 20!"},
	} {
		w := newWorld()
		th := w.task(10, 1, blocked, c.leaf, "ksys_read")
		th.Wait = c.r
		w.task(20, 1, blocked, inFUSE...)
		got := w.of().Of[th]
		want := Resource{}
		if c.r != nil {
			want = Resource{Kind: c.kind, ID: 7}
		}
		if got.Kind != c.kind || got.Evidence != c.ev || got.Confidence != Sure || got.Resource != want || owners(got) != c.owners || len(got.Notes) > 0 {
			t.Errorf("%s: %+v, owners %q", c.leaf, got, owners(got))
		}
	}
}

// Futex words: private ones count in their process, shared ones by place; only a verified owner
// is named; the kernel's word goes before that of user memory.
func TestFutexWords(t *testing.T) {
	const own = kcdata.FutexOwned
	mutex := func(flags uint32, tid uint32) kcdata.LinuxFutex {
		return kcdata.LinuxFutex{Addr: 0x7000, Flags: kcdata.FutexPrivate | flags, Object: kcdata.FutexGlibcMutex, OwnerTid: tid, OwnerStart: start(tid)}
	}
	for _, c := range []struct {
		name   string
		f      []kcdata.LinuxFutex
		r      *kcdata.LinuxWait
		kind   Kind
		owners string
		ev     Evidence
		res    Resource
		note   string
	}{
		{"mutex", []kcdata.LinuxFutex{mutex(own, 20)}, nil, UserMutex, "holds 20!", Word, Resource{UserMutex, 10, 0x7000}, ""},
		{"not owned", []kcdata.LinuxFutex{mutex(0, 20)}, nil, UserMutex, "", Word, Resource{UserMutex, 10, 0x7000}, ""},
		{"ambiguous", []kcdata.LinuxFutex{mutex(own|kcdata.FutexAmbiguous, 20)}, nil, UserMutex, "", Word, Resource{UserMutex, 10, 0x7000}, "more than one"},
		{"unsure", []kcdata.LinuxFutex{mutex(own|kcdata.FutexOwnerUnsure, 20)}, nil, UserMutex, "", Word, Resource{UserMutex, 10, 0x7000}, "could not be found out"},
		{"died", []kcdata.LinuxFutex{mutex(kcdata.FutexOwnerDied, 20)}, nil, UserMutex, "holds 20!+", Word, Resource{UserMutex, 10, 0x7000}, "died"},
		{"died, nobody has its number", []kcdata.LinuxFutex{mutex(kcdata.FutexOwnerDied, 0)}, nil, UserMutex, "holds 0+", Word, Resource{UserMutex, 10, 0x7000}, "died"},
		{"gone", []kcdata.LinuxFutex{mutex(kcdata.FutexOwnerGone, 99)}, nil, UserMutex, "holds 99+", Word, Resource{UserMutex, 10, 0x7000}, "(99)"},
		{"of another process", []kcdata.LinuxFutex{mutex(kcdata.FutexOwnerGone, 30)}, nil, UserMutex, "holds 0", Word, Resource{UserMutex, 10, 0x7000}, "thread 30, which is of another process"},
		{"join", []kcdata.LinuxFutex{{Addr: 0x7000, Place: 5, Flags: own, Object: kcdata.FutexGlibcJoin, OwnerTid: 20, OwnerStart: start(20)}}, nil, UserJoin, "joined 20!", Word, Resource{UserJoin, 0, 5}, ""},
		{"shared, no place", []kcdata.LinuxFutex{{Addr: 0x7000}}, nil, Futex, "", Word, Resource{Futex, 10, 0x7000}, ""},
		{"rwlock, readers", []kcdata.LinuxFutex{{Addr: 0x7000, Flags: kcdata.FutexPrivate, Object: kcdata.FutexGlibcRWLock}}, nil, UserRWLock, "", Word, Resource{UserRWLock, 10, 0x7000}, "readers"},
		{"musl", []kcdata.LinuxFutex{{Addr: 0x7000, Flags: kcdata.FutexPrivate, Object: kcdata.FutexMuslNormal}}, nil, UserMutex, "", Word, Resource{UserMutex, 10, 0x7000}, "keeps no owner"},
		{"PI, by the kernel", []kcdata.LinuxFutex{{Addr: 0x7000, Flags: kcdata.FutexPrivate | kcdata.FutexPI | kcdata.FutexDiffers | own, Object: kcdata.FutexPIWord, OwnerTid: 21, OwnerStart: start(21)}},
			&kcdata.LinuxWait{Flags: kcdata.WaitPI | kcdata.WaitOwned, Lock: 3, OwnerTid: 20, OwnerStart: start(20)}, UserPIMutex, "holds 20!", Field, Resource{UserPIMutex, 10, 0x7000}, "the kernel, which counts"},
		{"several", []kcdata.LinuxFutex{mutex(own, 20), mutex(own, 21)}, nil, Futex, "holds 20!, holds 21!", Word, Resource{}, ""},
		{"several, one unknown", []kcdata.LinuxFutex{mutex(own, 20), mutex(0, 0)}, nil, Futex, "", Word, Resource{}, "1 of the 2"},
		{"more than recorded", []kcdata.LinuxFutex{mutex(own, 20)}, &kcdata.LinuxWait{Flags: kcdata.WaitFewFutexes}, Futex, "", Word, Resource{}, "more futexes"},
		{"a kernel lock on the way", []kcdata.LinuxFutex{mutex(own, 20)}, &kcdata.LinuxWait{Flags: kcdata.WaitPI, Lock: 3}, RTMutex, "", Field, Resource{RTMutex, 0, 3}, ""},
	} {
		w := newWorld()
		th := w.task(10, 1, asleep, inFutex...)
		th.Futexes, th.Wait = c.f, c.r
		w.thread(w.last(), 20, asleep, inPipe...)
		w.thread(w.last(), 21, asleep, inPipe...)
		w.task(30, 1, asleep, inPipe...)
		got := w.of().Of[th]
		if got.Kind != c.kind || owners(got) != c.owners || got.Evidence != c.ev || got.Resource != c.res || got.AnyOwner != (len(got.Owners) > 1) {
			t.Errorf("%s: %+v, owners %q", c.name, got, owners(got))
		}
		wantNote(t, c.name, got, c.note)
	}
}

// A redacted file has numbers for places: a shared word is one thing in all processes. Equal
// words have one kind, also where only one waiter's bytes could be read.
func TestWordsAreOneThing(t *testing.T) {
	w := newWorld()
	w.s.Machine.Redacted = 1
	a, b := w.task(10, 1, asleep, inFutex...), w.task(11, 1, asleep, inFutex...)
	a.Futexes = []kcdata.LinuxFutex{{Addr: 3, Flags: kcdata.FutexTimed}}
	b.Futexes = []kcdata.LinuxFutex{{Addr: 3, Object: kcdata.FutexGlibcMutex}}
	all := w.of()
	if x, y := all.Of[a], all.Of[b]; x.Resource != y.Resource || x.Resource != (Resource{UserMutex, 0, 3}) || !x.Timed || y.Timed {
		t.Errorf("%+v %+v", x, y)
	}
}

// An owner that is younger than all waits for its lock may have got the number of one that ended.
func TestYoungerOwner(t *testing.T) {
	for _, c := range []struct {
		name          string
		began, second uint64 // of the owner, and when the second waiter fell asleep; in ns
		want          Confidence
		note          string
	}{
		{"older", now - 9*second, now - 5*second, Sure, ""},
		{"as old", now - 5*second + 1e7, now - 5*second, Sure, ""},
		{"younger than all", now - 2*second, now - 4*second, Likely, "began after the wait"},
		{"took it while one waited", now - 2*second, now - second, Sure, ""},
		{"the age of one is not known", now - 2*second, now + second, Sure, ""},
	} {
		w := newWorld()
		w.s.Machine.BoottimeNs = now
		a := w.task(10, 1, asleep, inFutex...)
		b := w.thread(w.last(), 11, asleep, inFutex...)
		owner := w.thread(w.last(), 20, asleep, inPipe...)
		owner.Linux.StartBoottime, b.Linux.LastArrival = c.began, c.second
		f := kcdata.LinuxFutex{Addr: 0x7000, Flags: kcdata.FutexPrivate | kcdata.FutexOwned, Object: kcdata.FutexGlibcMutex, OwnerTid: 20, OwnerStart: c.began}
		a.Futexes = []kcdata.LinuxFutex{f}
		b.Futexes = []kcdata.LinuxFutex{{Addr: 0x7000, Flags: kcdata.FutexPrivate | kcdata.FutexAbsent, Object: kcdata.FutexGlibcMutex}}
		got := w.of().Of[a]
		if got.Confidence != c.want || owners(got) != "holds 20!" {
			t.Errorf("%s: %s, %q", c.name, got.Confidence, owners(got))
		}
		wantNote(t, c.name, got, c.note)
	}
}

// Stopped, traced, frozen, vfork and runnable threads, and those that wait for nothing.
func TestStates(t *testing.T) {
	w := newWorld()
	tracer := w.task(5, 1, asleep, inWait...)
	stopped := w.task(10, 1, kcdata.StateStopped, "do_signal_stop", "get_signal")
	stopped.Wait = &kcdata.LinuxWait{Flags: kcdata.WaitFrozen}
	traced := w.task(11, 1, kcdata.StateTraced, "ptrace_stop", "get_signal")
	traced.Wait = &kcdata.LinuxWait{Flags: kcdata.WaitTraced | kcdata.WaitFrozen, PeerTid: 5, PeerTgid: 5, PeerStart: start(5)}
	frozen := w.task(12, 1, asleep, "get_signal", "arch_do_signal_or_restart")
	frozen.Wait = &kcdata.LinuxWait{Flags: kcdata.WaitFrozen}
	old := w.task(13, 1, asleep, "__refrigerator", "get_signal")
	newer := w.task(14, 1, kcdata.StateFrozen, "get_signal")
	parent := w.task(15, 1, killed, "kernel_clone", "__do_sys_clone")
	parent.Wait = &kcdata.LinuxWait{Flags: kcdata.WaitFrozen}
	child := w.task(16, 15, asleep, inPipe...)
	child.Wait = &kcdata.LinuxWait{Flags: kcdata.WaitVfork, PeerTid: 15, PeerTgid: 15, PeerStart: start(15)}
	stale := w.task(17, 1, asleep, inPipe...)
	w.task(18, 17, asleep, inPipe...).Wait = &kcdata.LinuxWait{Flags: kcdata.WaitVfork, PeerTid: 17, PeerTgid: 17, PeerStart: start(17)}
	kthreadd := w.task(2, 0, asleep, "kthreadd", "ret_from_fork")
	w.task(19, 2, kcdata.StateUninterruptible|kcdata.StateNoload, "worker_thread").Wait = &kcdata.LinuxWait{Flags: kcdata.WaitVfork, PeerTid: 2, PeerTgid: 2, PeerStart: start(2)}
	w.last().Linux.Present |= kcdata.TaskIsKernel
	both := w.task(26, 5, kcdata.StateTraced, "ptrace_stop")
	both.Wait = &kcdata.LinuxWait{Flags: kcdata.WaitTraced | kcdata.WaitVfork, PeerTid: 5, PeerTgid: 5, PeerStart: start(5)}
	hog := w.task(20, 1, 0)
	hog.Linux.OnCPU, hog.Linux.CPU = 1, 1
	queued := w.task(21, 1, 0)
	queued.Linux.CPU, queued.Linux.LastQueued = 1, now-second
	displaced := w.task(22, 1, 0)
	displaced.Linux.Present |= kcdata.ThreadDisplaced
	zombie := w.task(23, 1, 0)
	zombie.Linux.ExitState = kcdata.ExitZombie
	parked := w.task(24, 2, kcdata.StateParked, "__kthread_parkme")
	mutex := w.task(25, 1, blocked, inPipe...)
	all := w.of()
	for th, want := range map[*kcdata.Thread]struct {
		kind   Kind
		owners string
	}{
		stopped: {Stopped, ""}, traced: {Traced, "tracer 5!"}, frozen: {Frozen, ""}, old: {Frozen, ""}, newer: {Frozen, ""},
		parent: {Vfork, "execs 16!"}, child: {Pipe, ""}, stale: {Pipe, ""}, kthreadd: {AtRest, ""}, queued: {CPU, "runs 20!"},
		tracer: {ChildEnd, "child 26!, child 11!"}, both: {Traced, ""}, parked: {AtRest, ""}, mutex: {Other, ""},
	} {
		if got := all.Of[th]; got == nil || got.Kind != want.kind || owners(got) != want.owners {
			t.Errorf("%d: %+v, want %+v", th.ID, got, want)
		}
	}
	for _, th := range []*kcdata.Thread{hog, displaced, zombie} {
		if got := all.Of[th]; got != nil {
			t.Errorf("%d waits: %+v", th.ID, got)
		}
	}
}

// wait4 and waitid name the children that they concern, by the numbers of the caller's own pid
// namespace.
func TestChildren(t *testing.T) {
	const wait4, waitid = 61, 247
	neg := func(n int) uint64 { return uint64(uint32(-n)) }
	for _, c := range []struct {
		name   string
		nr     int64
		args   [6]uint64
		redact bool
		deep   bool
		owners string
		any    bool
		conf   Confidence
		note   string
	}{
		{"one", wait4, [6]uint64{20}, false, false, "child 20!", false, Sure, ""},
		{"any", wait4, [6]uint64{neg(1)}, false, false, "child 20!, child 21!, child 22!", true, Sure, ""},
		{"own group", wait4, [6]uint64{0}, false, false, "child 22!", false, Sure, ""},
		{"a group", wait4, [6]uint64{neg(20)}, false, false, "child 20!, child 21!", true, Sure, ""},
		{"a group without leader", wait4, [6]uint64{neg(77)}, false, false, "", false, Likely, "process group"},
		{"somebody else's child", wait4, [6]uint64{30}, false, false, "", false, Sure, "none of the children"},
		{"waitid one", waitid, [6]uint64{1, 21}, false, false, "child 21!", false, Sure, ""},
		{"waitid all", waitid, [6]uint64{0, 0}, false, false, "child 20!, child 21!, child 22!", true, Sure, ""},
		{"waitid pidfd", waitid, [6]uint64{3, 5}, false, false, "child 20!, child 21!, child 22!", true, Likely, "not in the file"},
		{"__WNOTHREAD", wait4, [6]uint64{neg(1), 0, 0x20000000}, false, false, "child 20!, child 21!, child 22!", true, Likely, "not in the file"},
		{"redacted", wait4, [6]uint64{20}, true, false, "child 20!, child 21!, child 22!", true, Likely, "not in the file"},
		{"nested", wait4, [6]uint64{2}, false, true, "child 21!", false, Sure, ""},
		{"nested, our own number", wait4, [6]uint64{20}, false, true, "", false, Sure, "none of the children"},
	} {
		w := newWorld()
		th := w.task(10, 1, asleep, inWait...)
		th.Syscall = &kcdata.LinuxSyscall{Nr: c.nr, Args: c.args}
		w.s.Machine.Redacted = map[bool]uint32{true: 1}[c.redact]
		for i, pid := range []uint32{20, 21, 22} {
			k := w.task(pid, 10, asleep, inPipe...)
			w.last().Linux.Pgid = []uint32{20, 20, 10}[i]
			if c.deep {
				k.NS = []kcdata.LinuxThreadNS{{Inode: 9, Tid: uint32(i + 50)}, {Inode: 8, Tid: uint32(i + 1)}}
				th.NS = []kcdata.LinuxThreadNS{{Inode: 9, Tid: 40}, {Inode: 8, Tid: 40}}
			}
		}
		w.task(30, 1, asleep, inPipe...)
		got := w.of().Of[th]
		if got.Kind != ChildEnd || owners(got) != c.owners || got.AnyOwner != c.any || got.Confidence != c.conf {
			t.Errorf("%s: %+v, owners %q", c.name, got, owners(got))
		}
		wantNote(t, c.name, got, c.note)
	}
}

// A file of a part of the machine may lack children, and says so.
func TestChildrenOfAPart(t *testing.T) {
	w := newWorld()
	w.s.Request = "--pid 10"
	th := w.task(10, 1, asleep, inWait...)
	th.Syscall = &kcdata.LinuxSyscall{Nr: 61, Args: [6]uint64{^uint64(0)}}
	w.task(20, 10, asleep, inPipe...)
	w.task(21, 10, asleep, inPipe...)
	got := w.of().Of[th]
	if got.Confidence != Likely || !got.AnyOwner {
		t.Errorf("%+v", got)
	}
	wantNote(t, "part", got, "may lack")
}
