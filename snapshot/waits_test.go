package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// windowOf is what the window recorded: with KeepUserSide collation leaves it so.
func windowOf(t *testing.T, engineName string, o Options, k bpftest.Knobs, pids []int) map[uint64]*kcdata.Thread {
	t.Helper()
	return threadsByID(windowFile(t, engineName, o, k, pids))
}

func windowFile(t *testing.T, engineName string, o Options, k bpftest.Knobs, pids []int) *kcdata.Snapshot {
	t.Helper()
	o.Engine, o.ArrivalBudget = engineName, time.Second
	s := pooledSession(t, o, engine.Hooks{Specs: k, KeepUserSide: true}, fmt.Sprintf("window %+v", k))
	_, snap, _ := captureWhole(t, s, Request{Pids: pids})
	return snap
}

// A kernel lock, by the fields of the task and by the scan of its stack: the same lock,
// the same owner. And the threads that others wait for. Both engines record the same.
func TestWaitsOfKnownTasks(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	needsNames(t)
	f := testtask.Start(t, testtask.MutexWait, testtask.InodeWait, testtask.VforkParent, testtask.TracedExit, testtask.Stopped, testtask.Sleeping)
	seen := map[testtask.Kind]map[uint64]bool{testtask.MutexWait: {}, testtask.InodeWait: {}}
	var all []map[uint64]*kcdata.Thread
	for _, engineName := range userEngines() {
		for _, noFields := range []bool{false, true} {
			snap := windowFile(t, engineName, Options{}, bpftest.Knobs{NoFields: noFields}, nil)
			got, places := threadsByID(snap), 0
			for _, c := range []*testtask.Child{f.One(testtask.MutexWait, "first"), f.One(testtask.MutexWait, "second"), f.One(testtask.InodeWait, "first"), f.One(testtask.InodeWait, "second")} {
				w, owner := got[uint64(c.Pid)].Wait, f.One(c.Kind, "owner")
				start := got[uint64(owner.Pid)].Linux.StartBoottime
				mutex := c.Kind == testtask.MutexWait
				if w == nil || mutex != (w.Kind == kcdata.LockMutex) || !mutex && w.Kind != kcdata.LockRWSem && w.Kind != kcdata.LockRWSemRead && w.Kind != kcdata.LockRWSemWrite || w.Flags&kcdata.WaitOwned == 0 || int(w.OwnerTid) != owner.Pid || int(w.OwnerTgid) != owner.Pid || w.OwnerStart != start {
					t.Errorf("%s, no fields %v: %v waits for %+v, want a lock of %d since %d", engineName, noFields, c, w, owner.Pid, start)
					continue
				}
				field, kind := uint32(kcdata.WaitHasBlocker), uint32(kcdata.LockRWSemWrite)
				if mutex {
					field, kind = field|kcdata.WaitHasBlockedOn, kcdata.LockMutex
				}
				if has := snap.WaitTaken.Sources&field != 0; !noFields && (has != (w.Flags&kcdata.WaitField != 0) || has && w.Kind != kind) {
					t.Errorf("%s: %v: sources %#x, and %+v", engineName, c, snap.WaitTaken.Sources, w)
				}
				if scan := w.Flags&kcdata.WaitScan != 0; scan == (w.Flags&kcdata.WaitField != 0) || noFields && !scan {
					t.Errorf("%s, no fields %v: %v: flags %#x", engineName, noFields, c, w.Flags)
				} else if mutex && scan && (w.Scan != kcdata.ScanFound || w.Hops < 1 || w.Hops > 2) {
					t.Errorf("%s: %v: the scan ended with %d, place %d", engineName, c, w.Scan, w.Hops)
				}
				if mutex {
					places += int(w.Hops)
				}
				seen[c.Kind][w.Lock] = true
			}
			if noFields && places != 1+2 {
				t.Errorf("%s: the places of two waiters are %d together", engineName, places)
			}
			all = append(all, got)
			wantPeer(t, got, f.One(testtask.VforkParent, "child"), f.One(testtask.VforkParent, ""), kcdata.WaitVfork)
			wantPeer(t, got, f.One(testtask.TracedExit, ""), f.One(testtask.TracedExit, "tracer"), kcdata.WaitTraced)
			for _, c := range []*testtask.Child{f.One(testtask.Stopped, ""), f.One(testtask.Sleeping, "")} {
				if w := got[uint64(c.Pid)].Wait; w != nil {
					t.Errorf("%s: %v has a record: %+v", engineName, c, w)
				}
			}
		}
	}
	for kind, at := range seen {
		if len(at) != 1 || at[0] {
			t.Errorf("%v: one lock is at %#v", kind, at)
		}
	}
	sameWaits(t, f, all)
}

// sameWaits compares what the engines recorded, with the fields and without.
func sameWaits(t *testing.T, f *testtask.Fixture, all []map[uint64]*kcdata.Thread) {
	t.Helper()
	for i := 2; i < len(all); i++ {
		for _, pid := range pidsOf(f) {
			a, b := all[i-2][uint64(pid)], all[i][uint64(pid)]
			if a == nil || b == nil {
				continue
			}
			if (a.Wait == nil) != (b.Wait == nil) || a.Wait != nil && *a.Wait != *b.Wait || !slices.Equal(a.Futexes, b.Futexes) {
				t.Errorf("%d: trap %+v %+v, pull %+v %+v", pid, a.Wait, a.Futexes, b.Wait, b.Futexes)
			}
		}
	}
}

func wantPeer(t *testing.T, got map[uint64]*kcdata.Thread, c, peer *testtask.Child, flag uint32) {
	t.Helper()
	w, p := got[uint64(c.Pid)].Wait, got[uint64(peer.Pid)]
	if w == nil || w.Flags&flag == 0 || int(w.PeerTid) != peer.Pid || int(w.PeerTgid) != peer.Pid || w.PeerStart != p.Linux.StartBoottime {
		t.Errorf("%v: %+v, want bit %#x and %v", c, w, flag, peer)
	}
}

// waiter is a thread of this process in one futex call, and what is to be recorded of it.
type waiter struct {
	name string
	call [7]uintptr
	want []kcdata.LinuxFutex // Place: 0: any but 0
	few  bool
	tid  int
}

const futexSame = 128 // FUTEX_PRIVATE_FLAG

// sleepers are threads in every call that waits for a futex, on words in memory of mem's
// bytes. They end with the test process: nobody wakes them before forget.
func sleepers(mem, far []byte) []*waiter {
	at := func(off int) uintptr { return uintptr(unsafe.Pointer(&mem[off])) }
	for i := range mem[:2048] {
		mem[i] = byte(i)
	}
	for off := 64; off < 2048; off += 64 {
		binary.NativeEndian.PutUint32(mem[off:], uint32(off))
	}
	futex := func(off int, flags, op, value uint32) kcdata.LinuxFutex {
		f := kcdata.LinuxFutex{Addr: uint64(at(off)), Flags: flags, Op: op, Expected: value, Have: 0x3ff}
		copy(f.Around[:], mem[off-16:])
		return f
	}
	// The kernel reads these while the threads sleep: not in memory that Go may move.
	longest := func(off int, sec int64) uintptr {
		*(*unix.Timespec)(unsafe.Pointer(&mem[off])) = unix.Timespec{Sec: sec}
		return at(off)
	}
	type futexWaitv struct {
		val, addr uint64
		flags     uint32
		_         uint32
	}
	list := unsafe.Slice((*futexWaitv)(unsafe.Pointer(&mem[2048])), 10)
	var listed []kcdata.LinuxFutex
	for i := range list {
		off := 1024 + 64*i
		list[i].val, list[i].addr, list[i].flags = uint64(off), uint64(at(off)), 2|futexSame
		if i < bpf.MaxFutexes {
			listed = append(listed, futex(off, kcdata.FutexWaitv|kcdata.FutexPrivate, 0, uint32(off)))
		}
	}
	edge := kcdata.LinuxFutex{Addr: uint64(uintptr(unsafe.Pointer(&far[len(far)/2-4]))), Flags: kcdata.FutexPrivate | kcdata.FutexAbsent, Have: 0x1f}
	copy(edge.Around[:], far[len(far)/2-20:len(far)/2])
	nr := uintptr(unix.SYS_FUTEX)
	return []*waiter{
		{name: "FUTEX_WAIT", call: [7]uintptr{nr, at(64), futexSame, 64}, want: []kcdata.LinuxFutex{futex(64, kcdata.FutexPrivate, 0, 64)}},
		{name: "FUTEX_WAIT, shared", call: [7]uintptr{nr, at(128), 0, 128}, want: []kcdata.LinuxFutex{futex(128, 0, 0, 128)}},
		{name: "FUTEX_WAIT_BITSET", call: [7]uintptr{nr, at(192), futexSame | 256 | 9, 192, longest(3072, 1<<33), 0, ^uintptr(0)},
			want: []kcdata.LinuxFutex{futex(192, kcdata.FutexPrivate|kcdata.FutexTimed, 9, 192)}},
		{name: "futex_wait", call: [7]uintptr{455, at(256), 256, 0xffff_ffff, 2 | futexSame, 0, unix.CLOCK_MONOTONIC},
			want: []kcdata.LinuxFutex{futex(256, kcdata.FutexPrivate, 0, 256)}},
		{name: "futex_wait, timed", call: [7]uintptr{455, at(320), 320, 0xffff_ffff, 2, longest(3104, 1<<33), unix.CLOCK_MONOTONIC},
			want: []kcdata.LinuxFutex{futex(320, kcdata.FutexTimed, 0, 320)}},
		{name: "FUTEX_WAIT, timed", call: [7]uintptr{nr, at(384), futexSame, 384, longest(3136, 3600)},
			want: []kcdata.LinuxFutex{futex(384, kcdata.FutexPrivate|kcdata.FutexTimed, 0, 384)}},
		{name: "futex_waitv", call: [7]uintptr{449, uintptr(unsafe.Pointer(&list[0])), 10, 0, 0, 0}, want: listed, few: true},
		{name: "at a page's end", call: [7]uintptr{nr, uintptr(edge.Addr), futexSame, 0}, want: []kcdata.LinuxFutex{edge}},
	}
}

// sleep begins the call on a thread of its own. False: the kernel has no such call.
func (w *waiter) sleep(t *testing.T) bool {
	t.Helper()
	tid, ended := make(chan int), make(chan unix.Errno, 1)
	go func() {
		runtime.LockOSThread()
		tid <- unix.Gettid()
		_, _, e := unix.Syscall6(w.call[0], w.call[1], w.call[2], w.call[3], w.call[4], w.call[5], w.call[6])
		ended <- e
	}()
	w.tid = <-tid
	err := testtask.WaitFor(slow(5*time.Second), func() (bool, error) {
		select {
		case e := <-ended:
			return false, e
		default:
		}
		return sleepsIn(w.tid, int(w.call[0])), nil
	})
	if err == unix.ENOSYS {
		return false
	}
	if err != nil {
		t.Fatalf("%s: %v", w.name, err)
	}
	return true
}

// sleepsIn says that a thread of ours sleeps in a system call.
func sleepsIn(tid, nr int) bool {
	b, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(tid) + "/syscall")
	return err == nil && bytes.HasPrefix(b, []byte(strconv.Itoa(nr)+" "))
}

// Every call that waits for a futex: the word, what is around it, and where two processes
// would meet; of a page that is not there what can be had. In a redacted capture too.
func TestFutexesInTheWindow(t *testing.T) {
	testneed.Smoke(t)
	requireBPF(t)
	mem, far := anonymous(t, 4096), anonymous(t, 8192)
	far[0] = 1
	list := slices.DeleteFunc(sleepers(mem, far), func(w *waiter) bool { return !w.sleep(t) })
	defer wake(list)
	var places []map[string]uint64
	for _, engineName := range userEngines() {
		for i, o := range []Options{{}, {UserStacks: UserStacksOff}} {
			if i != 0 && engineName == EngineTrap {
				continue // as of pull
			}
			got := windowOf(t, engineName, o, bpftest.Knobs{}, nil)
			at := map[string]uint64{}
			for _, w := range list {
				th := got[uint64(w.tid)]
				if th == nil {
					t.Fatalf("%s: no thread %d", engineName, w.tid)
				}
				found := slices.Clone(th.Futexes)
				for i := range found {
					if found[i].Place == 0 {
						t.Errorf("%s: %s: no place", engineName, w.name)
					}
					at[w.name], found[i].Place = found[i].Place, 0
				}
				if !slices.Equal(found, w.want) {
					t.Errorf("%s: %s:\n%+v\nwant\n%+v", engineName, w.name, found, w.want)
				}
				if few := th.Wait != nil && th.Wait.Flags&kcdata.WaitFewFutexes != 0; few != w.few {
					t.Errorf("%s: %s: record %+v", engineName, w.name, th.Wait)
				}
			}
			places = append(places, at)
		}
	}
	for _, at := range places[1:] {
		for name, p := range at {
			if p != places[0][name] {
				t.Errorf("%s is at %#x and at %#x", name, places[0][name], p)
			}
		}
	}
	if places[0]["FUTEX_WAIT"]+64 != places[0]["FUTEX_WAIT, shared"] {
		t.Errorf("two words of a page are at %#x and %#x", places[0]["FUTEX_WAIT"], places[0]["FUTEX_WAIT, shared"])
	}
	redactedFutexes(t, EnginePull, list)
	for _, engineName := range userEngines() {
		got := windowOf(t, engineName, Options{Wait: WaitOff}, bpftest.Knobs{}, nil)
		for _, th := range got {
			if th.Wait != nil || th.Futexes != nil {
				t.Fatalf("%s, --wait off: thread %d has %+v %+v", engineName, th.ID, th.Wait, th.Futexes)
			}
		}
	}
}

// redactedFutexes: a redacted file has as many words of each call, with their flags and
// operation, and a number in place of each address: the same for the same word.
func redactedFutexes(t *testing.T, engineName string, list []*waiter) {
	t.Helper()
	got := windowOf(t, engineName, Options{Redact: true}, bpftest.Knobs{}, nil)
	numbers := map[uint64]uint64{}
	for _, w := range list {
		var want []kcdata.LinuxFutex
		for _, f := range w.want {
			want = append(want, kcdata.LinuxFutex{Addr: f.Addr, Flags: f.Flags, Op: f.Op})
		}
		th := got[uint64(w.tid)]
		if th == nil {
			t.Fatalf("%s, redacted: no thread %d", engineName, w.tid)
		}
		found := slices.Clone(th.Futexes)
		for i := range found[:min(len(found), len(want))] {
			number := found[i].Addr
			if at, taken := numbers[number]; number == 0 || number > uint64(len(got)) || taken && at != want[i].Addr {
				t.Errorf("%s, redacted: %s: word %d has the number %d", engineName, w.name, i, number)
			}
			numbers[number], found[i].Addr = want[i].Addr, want[i].Addr
		}
		if !slices.Equal(found, want) {
			t.Errorf("%s, redacted: %s:\n%+v\nwant\n%+v", engineName, w.name, found, want)
		}
	}
}

// wake ends the waits. What is timed by an hour ends with the process.
func wake(list []*waiter) {
	for _, w := range list {
		for _, f := range w.want {
			for _, flag := range []uintptr{0, futexSame} {
				unix.Syscall6(unix.SYS_FUTEX, uintptr(f.Addr), flag|1, 1<<30, 0, 0, 0)
			}
		}
	}
}

// A PI futex: its word, and the kernel's own lock behind it, with the owner.
func TestPIFutexInTheWindow(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	mem := anonymous(t, 4096)
	word := uintptr(unsafe.Pointer(&mem[64]))
	held, let := make(chan int), make(chan bool)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		_, _, e := unix.Syscall6(unix.SYS_FUTEX, word, futexSame|6, 0, 0, 0, 0)
		if e != 0 {
			held <- 0
			return
		}
		held <- unix.Gettid()
		<-let
		unix.Syscall6(unix.SYS_FUTEX, word, futexSame|7, 0, 0, 0, 0)
	}()
	owner := <-held
	if owner == 0 {
		t.Fatal("FUTEX_LOCK_PI failed")
	}
	defer close(let)
	w := &waiter{name: "FUTEX_LOCK_PI", call: [7]uintptr{unix.SYS_FUTEX, word, futexSame | 6, 0}}
	w.sleep(t)
	for _, engineName := range userEngines() {
		got := windowOf(t, engineName, Options{}, bpftest.Knobs{}, nil)
		th := got[uint64(w.tid)]
		if len(th.Futexes) != 1 || th.Futexes[0].Flags != kcdata.FutexPI|kcdata.FutexPrivate|kcdata.FutexOwned ||
			th.Futexes[0].Op != 6 || int(th.Futexes[0].OwnerTid) != owner {
			t.Fatalf("%s: %+v", engineName, th.Futexes)
		}
		if v, ok := th.Futexes[0].Word(); !ok || int(v&0x3fffffff) != owner {
			t.Errorf("%s: the word is %#x, want the number of %d", engineName, v, owner)
		}
		k := th.Wait
		if k == nil || k.Flags != kcdata.WaitPI|kcdata.WaitOwned || k.Kind != kcdata.LockRTMutex || int(k.OwnerTid) != owner || int(k.OwnerTgid) != os.Getpid() || k.OwnerStart != got[uint64(owner)].Linux.StartBoottime {
			t.Errorf("%s: %+v, want an rt_mutex of %d", engineName, k, owner)
		}
	}
}

// anonymous is private memory, of which no page is there before it is written to.
func anonymous(t *testing.T, n int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
	return mem // kept: threads may still wait there
}
