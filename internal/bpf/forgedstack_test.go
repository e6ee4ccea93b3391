package bpf

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"structs"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// forgedStack mirrors struct forged_stack (mapletest.bpf.c).
type forgedStack struct {
	_                            structs.HostLayout
	Sp, Task, StackAt, StackSize uint64
	Stack                        [128]uint64
	V                            kcdata.LinuxWait
}

// The made-up slow paths, and a word that points into each.
var forgedSlow = []SlowPath{
	{0xffff_ffff_8100_0000, 0xffff_ffff_8100_0800, kcdata.LockMutex},
	{0xffff_ffff_8100_1000, 0xffff_ffff_8100_1400, kcdata.LockRWSemRead},
	{0xffff_ffff_8100_1400, 0xffff_ffff_8100_1800, kcdata.LockRWSemWrite},
	{0xffff_ffff_8100_2000, 0xffff_ffff_8100_2200, kcdata.LockSemaphore},
}

const inMutex, inRead, inWrite, inNothing = 0xffff_ffff_8100_0007, 0xffff_ffff_8100_13ff, 0xffff_ffff_8100_1400, 0xffff_ffff_8100_0800

// queue is a lock with waiters in pages of ours, as the kernel has them. The first
// waiter's record is in the stack at hand, if own is 0. A task, whose stack is all these
// pages, is named behind each.
type queue struct {
	t     *testing.T
	world *forgedWorld
	ring  bool // locks point to their first waiter
	list  [8]uint64
	pages [][]byte
	at    []uint64
	asked *forgedStack
	scan  *ebpf.Program
	task  uint64
	nodes []uint64
	own   int // index in nodes
	lock  uint64
}

const queuePages = 5 // the last has the lock and the task

func newQueue(t *testing.T, ring bool) *queue {
	t.Helper()
	w := newForgedWorld(t)
	q := &queue{t: t, world: w, ring: ring, list: layoutOfWaits(w.types).list}
	spec := mapleSpec(t, &w.ram, "scan_forged")
	table, start, length := Waits{On: true, Slow: forgedSlow}.bounds()
	if err := setValues(spec, map[string]any{
		"cfg_wait": uint32(1), "cfg_wait_ring": Flag(ring), "cfg_wait_list": q.list, "cfg_wait_signed": signedBits(start),
		"cfg_slow_start": start, "cfg_slow_len": length, "cfg_slow": table,
	}); err != nil {
		t.Fatal(err)
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(coll.Close)
	mem, err := mmap(coll.Maps["forged_stacks"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	q.asked, q.scan = (*forgedStack)(unsafe.Pointer(&mem[0])), coll.Programs["scan_forged"]
	size := os.Getpagesize()
	all := mapped(t, queuePages*size, unix.PROT_READ|unix.PROT_WRITE)
	unix.Madvise(all, unix.MADV_NOHUGEPAGE)
	if err := unix.Mlock(all); err != nil {
		t.Fatal(err)
	}
	for i := range queuePages {
		page := all[i*size:][:size]
		page[0] = 1
		frame, err := pagemap("/proc/self/pagemap")(addrOf(page))
		if err != nil {
			t.Fatal(err)
		}
		q.pages, q.at = append(q.pages, page), append(q.at, w.ram.Base+frame<<pageShift())
	}
	// The last is beyond the others: what lies between two of them counts as their stack.
	for i, last := range q.at[:queuePages-1] {
		if n := queuePages - 1; last > q.at[n] {
			q.at[i], q.at[n], q.pages[i], q.pages[n] = q.at[n], q.at[i], q.pages[n], q.pages[i]
		}
	}
	return q
}

// put writes a word where the kernel sees it at this address.
func (q *queue) put(at, value uint64) {
	for i, from := range q.at {
		if off := at - from; off < uint64(len(q.pages[i])) {
			binary.NativeEndian.PutUint64(q.pages[i][off:], value)
			return
		}
	}
	q.t.Fatalf("%#x is in no page", at)
}

// build makes a lock with n waiters, of which own is the thread at hand.
func (q *queue) build(n, own int, kind uint32) {
	q.t.Helper()
	for _, p := range q.pages {
		clear(p)
	}
	last := q.at[queuePages-1]
	q.lock, q.task, q.own, q.nodes = last+0x100, last+0x400, own, nil
	for i := range n {
		q.nodes = append(q.nodes, q.at[i/100]+uint64(i%100)*32+64)
	}
	// One task stands for all: its stack is where the first page is, and as large as all of them
	// are apart.
	low, high := q.at[0], q.at[0]
	for _, at := range q.at[:queuePages-1] {
		low, high = min(low, at), max(high, at)
	}
	q.put(q.task+offset(q.t, q.world.types, "task_struct", "stack"), low)
	q.asked.StackSize = high - low + uint64(os.Getpagesize())
	all := q.nodes
	if !q.ring {
		all = append([]uint64{q.lock + q.list[kind]}, q.nodes...)
	}
	for i, node := range all {
		q.put(node, all[(i+1)%len(all)])
		q.put(node+8, all[(i+len(all)-1)%len(all)])
	}
	for _, node := range q.nodes {
		q.put(node+16, q.task)
	}
	if q.ring {
		q.put(q.lock+q.list[kind], q.nodes[0])
	}
	q.owner(kind, last+0x400|1<<1) // flag bits are no address
	q.asked.Task, q.asked.StackAt, q.asked.Stack = q.task, low, [128]uint64{}
	q.asked.Sp = q.nodes[own] - 8*30
	path := map[uint32]uint64{kcdata.LockMutex: inMutex, kcdata.LockRWSemRead: inRead, kcdata.LockRWSemWrite: inWrite}[kind]
	q.asked.Stack[9] = path
	q.asked.Stack[12] = q.lock
	q.record()
}

// record puts the thread's waiter record into its stack, as the ring has it.
func (q *queue) record() {
	n := len(q.nodes)
	next, prev := q.nodes[(q.own+1)%n], q.nodes[(q.own+n-1)%n]
	if !q.ring && q.own == n-1 {
		next = q.head()
	}
	if !q.ring && q.own == 0 {
		prev = q.head()
	}
	q.asked.Stack[30], q.asked.Stack[31], q.asked.Stack[32] = next, prev, q.task
}

func (q *queue) head() uint64 { return q.lock + q.list[kcdata.LockMutex] }

func (q *queue) owner(kind uint32, word uint64) {
	name := "rw_semaphore"
	if kind == kcdata.LockMutex {
		name = "mutex"
	}
	q.put(q.lock+offset(q.t, q.world.types, name, "owner"), word)
}

func (q *queue) run() kcdata.LinuxWait {
	q.t.Helper()
	q.asked.V = kcdata.LinuxWait{}
	var pass Iterator
	scope := TaskScope(uint32(os.Getpid()))
	if errno := pass.Open(q.scan.FD(), &scope); errno != 0 {
		q.t.Fatal(errno)
	}
	defer pass.Close()
	if _, errno := pass.Read(make([]byte, 16)); errno != 0 {
		q.t.Fatal(errno)
	}
	return q.asked.V
}

func (q *queue) want(what string, scan, hops uint32) kcdata.LinuxWait {
	q.t.Helper()
	got := q.run()
	wrong := got.Scan != scan || got.Hops != hops
	if scan == kcdata.ScanFound {
		wrong = wrong || got.Lock != q.lock || got.Flags&kcdata.WaitScan == 0
	} else {
		wrong = wrong || got.Lock != 0 || got.Kind != 0 || got.Flags != 0
	}
	if wrong {
		q.t.Errorf("ring %v, %s: %+v, want the scan to end with %d after %d; the lock is %#x", q.ring, what, got, scan, hops, q.lock)
	}
	return got
}

// Stacks and rings by hand: a lock is found if all agree, and never else; whatever stands
// there, the scan ends.
func TestScanOfForgedStacks(t *testing.T) {
	testneed.Live(t)
	for _, ring := range []bool{false, true} {
		t.Run(fmt.Sprint("ring=", ring), func(t *testing.T) {
			q := newQueue(t, ring)
			for _, place := range []struct{ n, own int }{{1, 0}, {2, 0}, {2, 1}, {3, 1}, {300, 255}} {
				q.build(place.n, place.own, kcdata.LockMutex)
				got := q.want(fmt.Sprint(place), kcdata.ScanFound, uint32(place.own+1))
				if got.Kind != kcdata.LockMutex || got.Flags&kcdata.WaitOwned == 0 {
					t.Errorf("%v: %+v", place, got)
				}
			}
			q.build(300, 256, kcdata.LockMutex)
			q.want("a queue that is too long", kcdata.ScanTooLong, 256)
			hostileStacks(q)
			hostileRings(q)
			hostileOwners(q)
		})
	}
}

func hostileStacks(q *queue) {
	for what, c := range map[string]struct {
		path       uint64
		at         int
		scan, hops uint32
	}{
		"no slow path":              {inNothing, 9, kcdata.ScanNoPath, 0},
		"a slow path above":         {inMutex, 34, kcdata.ScanNoRing, 0},
		"one within the record":     {inMutex, 29, kcdata.ScanFound, 2},
		"one before the first text": {forgedSlow[0].Start - 1, 9, kcdata.ScanNoPath, 0},
	} {
		q.build(3, 1, kcdata.LockMutex)
		q.asked.Stack[9] = 0
		q.asked.Stack[c.at] = c.path
		q.want(what, c.scan, c.hops)
	}
	if runtime.GOARCH == "arm64" {
		for _, signature := range []uint64{0x7f << 48, 0xff7f << 48, 0x5501 << 48} {
			q.build(3, 1, kcdata.LockMutex)
			q.asked.Stack[9] = inMutex ^ signature
			q.want(fmt.Sprintf("signature %#x", signature), kcdata.ScanFound, 2)
			q.asked.Stack[9] = inMutex &^ (0xffff << 48)
			q.want("a user's address", kcdata.ScanNoPath, 0)
		}
	}
	// What an earlier call left: the nearest path below the record counts.
	q.build(3, 1, kcdata.LockRWSemWrite)
	q.asked.Stack[3] = inMutex
	if got := q.run(); got.Kind != kcdata.LockRWSemWrite || got.Lock != q.lock {
		q.t.Errorf("ring %v: two paths: %+v", q.ring, got)
	}
	q.build(3, 1, kcdata.LockMutex)
	q.asked.Stack[20], q.asked.Stack[21], q.asked.Stack[22] = q.nodes[0], q.nodes[2], q.task // a stale record
	q.want("a record that was left behind", kcdata.ScanFound, 2)
}

func hostileRings(q *queue) {
	user := addrOf(q.pages[0]) + 64
	for what, link := range map[string]uint64{
		"a user's": user, "not canonical": 0x1234_5678_0000_0000, "odd": q.at[0] + 65, "not there": 0xff80_0000_0000_0000, "0": 0,
		"nearly the end": ^uint64(7), "another node": q.at[0] + 0x800,
	} {
		q.build(3, 1, kcdata.LockMutex)
		q.asked.Stack[31] = link
		q.want("prev in the stack is "+what, kcdata.ScanNoRing, 0)
		q.build(3, 1, kcdata.LockMutex)
		q.asked.Stack[30] = link
		q.want("next in the stack is "+what, kcdata.ScanNoRing, 0)
		q.build(4, 2, kcdata.LockMutex)
		q.put(q.nodes[1]+8, link)
		q.want("a neighbour's link is "+what, kcdata.ScanNoRing, 2)
	}
	q.build(3, 1, kcdata.LockMutex)
	q.put(q.nodes[0], q.nodes[2])
	q.want("the neighbour before does not point back", kcdata.ScanNoRing, 0)
	q.build(3, 1, kcdata.LockMutex)
	q.put(q.nodes[2]+8, q.nodes[0])
	q.want("the neighbour behind does not point back", kcdata.ScanNoRing, 0)
	for _, c := range []struct{ n, scan, hops int }{{5, kcdata.ScanNoLock, 5}, {380, kcdata.ScanTooLong, 256}} {
		q.build(c.n, 1, kcdata.LockMutex)
		for i, node := range q.nodes { // no lock in it
			q.put(node, q.nodes[(i+1)%c.n])
			q.put(node+8, q.nodes[(i+c.n-1)%c.n])
		}
		if q.ring {
			q.put(q.lock+q.list[kcdata.LockMutex], q.nodes[0]+8)
		}
		q.want(fmt.Sprint("a ring of ", c.n, " without a lock"), uint32(c.scan), uint32(c.hops))
	}
	if !q.ring {
		return
	}
	for why, lock := range q.world.hostile(0x100) {
		q.build(3, 1, kcdata.LockMutex)
		copy(q.world.twin[0x100:], q.pages[queuePages-1][0x100:0x200])
		copy(q.world.copies[0x100:], q.pages[queuePages-1][0x100:0x200])
		q.asked.Stack[12] = lock
		q.want("the lock is "+why, kcdata.ScanNoLock, 1)
	}
}

func hostileOwners(q *queue) {
	for why, at := range q.world.hostile(0x400) {
		q.build(3, 1, kcdata.LockMutex)
		q.owner(kcdata.LockMutex, at&^7)
		if got := q.run(); at&^7 != 0 && (got.Flags&kcdata.WaitBadOwner == 0 || got.OwnerTid != 0 || got.OwnerStart != 0) {
			q.t.Errorf("ring %v: the owner is %s: %+v", q.ring, why, got)
		}
	}
	for word, want := range map[uint64]uint32{0: kcdata.WaitFree, q.task | 1: kcdata.WaitOwned, q.task | 3: kcdata.WaitOwned, q.task | 4: kcdata.WaitFree, q.task | 5: kcdata.WaitFree, q.task | 7: kcdata.WaitFree} {
		q.build(3, 1, kcdata.LockMutex)
		q.owner(kcdata.LockMutex, word)
		if got := q.run(); got.Flags != kcdata.WaitScan|want {
			q.t.Errorf("ring %v: a mutex's owner word %#x: %+v, want %#x", q.ring, word, got, want)
		}
	}
	for word, want := range map[uint64]uint32{0: kcdata.WaitFree, 2: kcdata.WaitFree, 1: kcdata.WaitReaders, q.task | 1: kcdata.WaitReaders, q.task | 3: kcdata.WaitReaders, q.task: kcdata.WaitOwned, q.task | 2: kcdata.WaitOwned} {
		for _, kind := range []uint32{kcdata.LockRWSemRead, kcdata.LockRWSemWrite} {
			q.build(3, 1, kind)
			q.owner(kind, word)
			if got := q.run(); got.Kind != kind || got.Flags != kcdata.WaitScan|want {
				q.t.Errorf("ring %v: owner word %#x: %+v, want %#x", q.ring, word, got, want)
			}
		}
	}
}
