package futex

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// sharing is a Memory that says the same of all pairs of processes but the listed ones.
type sharing struct {
	others Sharing
	pairs  map[[2]uint32]Sharing
}

func (s sharing) Shares(_ *kcdata.LinuxFutex, process, other uint32) Sharing {
	if v, ok := s.pairs[[2]uint32{process, other}]; ok {
		return v
	}
	return s.others
}

// world is two processes in the first namespace, and one in each of two deeper ones with the very
// same inner numbers.
//
//	1000: threads 1000, 1001, 1002 (dead)
//	2000: threads 2000, 2001
//	3000: threads 3000 (7 in namespace 50), 3001 (1001 there)
//	4000: threads 4000 (7 in namespace 60), 4001 (1001 there), 4002 (8; and 77 in namespace 61 within it)
func world() (*Table, map[uint32]int) {
	t, at := new(Table), map[uint32]int{}
	add := func(tid, tgid uint32, dead bool, ns ...kcdata.LinuxThreadNS) {
		at[tid] = t.Add(Thread{Tid: tid, Tgid: tgid, Start: 5e9 + uint64(tid), Dead: dead}, ns)
	}
	in := func(inode, tid uint32) kcdata.LinuxThreadNS { return kcdata.LinuxThreadNS{Inode: inode, Tid: tid} }
	add(1000, 1000, false)
	add(1001, 1000, false)
	add(1002, 1000, true)
	add(2000, 2000, false)
	add(2001, 2000, false)
	add(3000, 3000, false, in(50, 7))
	add(3001, 3000, false, in(50, 1001))
	add(4000, 4000, false, in(60, 7))
	add(4001, 4000, false, in(60, 1001))
	add(4002, 4002, false, in(60, 8), in(61, 77))
	return t, at
}

// Who is named, for every layout, over processes, pid namespaces and shared memory.
func TestOwner(t *testing.T) {
	apart, same, unsure := sharing{others: Apart}, sharing{others: Same}, sharing{others: Unsure}
	for _, s := range shapes {
		joined := s.object == kcdata.FutexGlibcJoin || s.object == kcdata.FutexMuslJoin
		known := func(flags uint32) (uint32, uint32, uint32) { // what is said where nobody is named
			if joined {
				return 0, 0, 0
			}
			return s.object, 0, flags
		}
		ambiguous, gone, lost := func() (uint32, uint32, uint32) { return known(kcdata.FutexAmbiguous) },
			func() (uint32, uint32, uint32) { return known(kcdata.FutexOwnerGone) },
			func() (uint32, uint32, uint32) { return known(kcdata.FutexOwnerUnsure) }
		owned := func(tid uint32) func() (uint32, uint32, uint32) {
			return func() (uint32, uint32, uint32) { return s.object, tid, kcdata.FutexOwned }
		}
		elsewhere := func(tid uint32) func() (uint32, uint32, uint32) { // another process has the number
			return func() (uint32, uint32, uint32) {
				object, _, flags := gone()
				if joined {
					tid = 0
				}
				return object, tid, flags
			}
		}
		kernel := s.object == kcdata.FutexPIWord
		shared := func(yes, no func() (uint32, uint32, uint32)) func() (uint32, uint32, uint32) {
			if s.shared && !joined {
				return yes
			}
			return no
		}
		foreign := func(yes func() (uint32, uint32, uint32)) func() (uint32, uint32, uint32) { // a thread of another namespace counts
			if kernel {
				return gone
			}
			return shared(yes, gone)
		}
		cases := []struct {
			name   string
			number uint32
			waiter uint32
			mem    Memory
			want   func() (object, owner, flags uint32)
		}{
			{"a thread of the same process", 1001, 1000, apart, owned(1001)},
			{"the same, and others of that number in the same memory", 1001, 1000, same, func() (uint32, uint32, uint32) {
				if kernel {
					return owned(1001)()
				}
				return shared(ambiguous, owned(1001))()
			}},
			{"the same, and it is not known of others", 1001, 1000, unsure, owned(1001)},
			{"one of another namespace, and that is not known", 77, 1000, unsure, foreign(lost)},
			{"another process", 2001, 1000, apart, elsewhere(2001)},
			{"another process with the same memory", 2001, 1000, same, shared(owned(2001), elsewhere(2001))},
			{"another process, not known", 2001, 1000, unsure, shared(lost, elsewhere(2001))},
			{"nobody", 555, 1000, same, gone},
			{"a number of the inner namespace", 7, 3001, apart, owned(3000)},
			{"the same number, a bystander of the host", 1001, 3000, apart, owned(3001)},
			{"an inner number, waited for outside", 7, 1000, same, foreign(ambiguous)},
			{"one of another namespace", 8, 3000, same, gone},
			{"one of a namespace within another", 77, 1000, same, foreign(lost)},
			{"seen from the namespace in between", 8, 4000, same, func() (uint32, uint32, uint32) {
				if s.shared && !joined {
					return s.object, 4002, kcdata.FutexOwned
				}
				return elsewhere(4002)()
			}},
			{"a dead one", 1002, 1000, apart, func() (uint32, uint32, uint32) {
				if joined {
					return 0, 0, 0
				}
				return s.object, 1002, kcdata.FutexOwnerDied
			}},
			{"itself", 1000, 1000, apart, func() (uint32, uint32, uint32) {
				if s.self {
					return owned(1000)()
				}
				return 0, 0, 0
			}},
			{"0", 0, 1000, same, func() (uint32, uint32, uint32) { return 0, 0, 0 }},
			{"more than a number can be", maxNumber + 1, 1000, same, func() (uint32, uint32, uint32) { return 0, 0, 0 }},
		}
		table, at := world()
		for _, c := range cases {
			f := s.make(c.number)
			f.Flags |= found // what the window wrote there does not count
			f.Object, f.OwnerTid, f.OwnerTgid, f.OwnerStart = 99, 98, 97, 96
			got := resolve(table, f, at[c.waiter], c.mem)
			object, owner, flags := c.want()
			if s.name == "PI, shared, 32-bit" && c.number == 0 { // FUTEX_OWNER_DIED alone
				object, flags = s.object, kcdata.FutexOwnerDied
			}
			if got.Object != object || got.OwnerTid != owner || got.Flags&found != flags {
				t.Errorf("%s, %s: object %d, owner %d, flags %#x; want %d, %d, %#x", s.name, c.name, got.Object, got.OwnerTid, got.Flags&found, object, owner, flags)
			}
			want := Thread{}
			if owner != 0 {
				want = table.At(at[owner])
			}
			if got.OwnerTgid != want.Tgid || got.OwnerStart != want.Start {
				t.Errorf("%s, %s: of process %d, start %d; want %+v", s.name, c.name, got.OwnerTgid, got.OwnerStart, want)
			}
		}
	}
}

// Objects that name nobody.
func TestUnnamed(t *testing.T) {
	table, at := world()
	for _, u := range unnamed {
		got := resolve(table, u.f, at[1000], sharing{others: Same})
		if got.Object != u.object || got.OwnerTid != 0 || got.Flags&found != u.flags {
			t.Errorf("%s: object %d, owner %d, flags %#x; want %d, none, %#x", u.name, got.Object, got.OwnerTid, got.Flags&found, u.object, u.flags)
		}
	}
}

// A robust mutex whose owner died names a zombie with that number, and no living thread.
func TestDiedByNumber(t *testing.T) {
	for number, owner := range map[uint32]uint32{1002: 1002, 1001: 0, 999: 0} {
		table, at := world()
		f := lay(0, 0, waiters|number, 0, waiters|ownerDied, 1, number, 1, 144, 0)
		got := resolve(table, f, at[1000], sharing{others: Apart})
		if got.OwnerTid != owner || got.Flags&found != kcdata.FutexOwnerDied {
			t.Errorf("%d: owner %d, flags %#x", number, got.OwnerTid, got.Flags&found)
		}
	}
}

// Each byte counts: with one field that the library does not write so, or one that was not
// read, nobody is named.
func TestEveryFieldCounts(t *testing.T) {
	table, at := world()
	for _, s := range shapes {
		if s.object == kcdata.FutexPIWord {
			continue // one word
		}
		f := s.make(1001)
		var free []int
		named := func(g kcdata.LinuxFutex) bool {
			return resolve(table, &g, at[1000], sharing{others: Apart}).OwnerTid == 1001
		}
		for off := -16; off <= 20; off += 4 {
			zero, odd, unread := *f, *f, *f
			put(&zero, off, 0)
			put(&odd, off, 0xdeadbeef)
			unread.Have &^= 1 << ((before + off) / 4)
			if named(zero) && named(odd) {
				free = append(free, off)
			} else if named(unread) {
				t.Errorf("%s: named without the word at %d", s.name, off)
			}
		}
		if !slices.Equal(free, s.free) {
			t.Errorf("%s: anything may stand at %d, want %d", s.name, free, s.free)
		}
		for name, change := range map[string]func(*kcdata.LinuxFutex){
			"another call":        func(f *kcdata.LinuxFutex) { f.Op = 11 },
			"another expectation": func(f *kcdata.LinuxFutex) { f.Expected ^= waiters | 4 },
			"32 bit":              func(f *kcdata.LinuxFutex) { f.Flags |= kcdata.FutexCompat },
			"private or not":      func(f *kcdata.LinuxFutex) { f.Flags ^= private },
			"nothing read":        func(f *kcdata.LinuxFutex) { f.Have = 0 },
			"one of several":      func(f *kcdata.LinuxFutex) { f.Flags |= kcdata.FutexWaitv },
			"4 bytes off":         func(f *kcdata.LinuxFutex) { f.Addr += 4 },
		} {
			g := *f
			change(&g)
			if got := resolve(table, &g, at[1000], sharing{others: Apart}); got.OwnerTid != 0 || got.Object != 0 {
				t.Errorf("%s, %s: %+v", s.name, name, got)
			}
		}
	}
	for _, s := range shapes { // what the library does not call
		f := s.make(1001)
		var calls []uint32
		for op := range uint32(16) {
			for _, timed := range []uint32{0, kcdata.FutexTimed} {
				g := *f
				g.Op, g.Flags = op, g.Flags&^kcdata.FutexTimed|timed
				if op == opLockPI || op == opLockPI2 { // the kernel's own word
					continue
				}
				if resolve(table, &g, at[1000], sharing{others: Apart}).OwnerTid != 0 {
					calls = append(calls, op|timed<<8)
				}
			}
		}
		const wait, timedWait, bits, timedBits = 0, kcdata.FutexTimed << 8, 9, 9 | kcdata.FutexTimed<<8
		want := map[uint32][]uint32{
			kcdata.FutexGlibcMutex: {wait, timedWait, timedBits}, kcdata.FutexGlibcRWLock: {bits, timedBits},
			kcdata.FutexGlibcJoin: {wait, timedWait, bits, timedBits},
			kcdata.FutexMuslMutex: {wait, timedWait}, kcdata.FutexMuslJoin: {wait, timedWait},
		}[s.object]
		if s.object != kcdata.FutexPIWord && !slices.Equal(calls, want) {
			t.Errorf("%s: named in the calls %#x, want %#x", s.name, calls, want)
		}
	}
	mutex := shapes[0].make(1001)
	put(mutex, 12, 4) // more users than threads
	if got := resolve(table, mutex, at[1000], sharing{}); got.Object != 0 {
		t.Errorf("4 users of 3 threads: %+v", got)
	}
}

// Records of namespaces that make no sense give a thread no number below the recorded one.
func TestOddNamespaces(t *testing.T) {
	for _, ns := range [][]kcdata.LinuxThreadNS{{{Inode: 0, Tid: 7}}, {{Inode: 50, Tid: 0}}, {{Inode: unknownNS, Tid: 7}}, {{Inode: 50, Tid: 9}, {Inode: 0, Tid: 7}}} {
		table := new(Table)
		waiter := table.Add(Thread{Tid: 100, Tgid: 100, Start: 1}, ns)
		table.Add(Thread{Tid: 7, Tgid: 100, Start: 2}, nil)
		table.Add(Thread{Tid: 101, Tgid: 100, Start: 3}, ns)
		for _, s := range shapes {
			if got := resolve(table, s.make(7), waiter, sharing{others: Same}); got.OwnerTid != 0 {
				t.Errorf("%v, %s: %+v", ns, s.name, got)
			}
		}
	}
}

// Two threads of one number in one namespace, which a kernel never has, are two candidates.
func TestTwins(t *testing.T) {
	table := new(Table)
	waiter := table.Add(Thread{Tid: 100, Tgid: 100, Start: 1}, nil)
	table.Add(Thread{Tid: 101, Tgid: 100, Start: 2}, nil)
	table.Add(Thread{Tid: 101, Tgid: 100, Start: 3}, nil)
	for _, s := range shapes {
		if got := resolve(table, s.make(101), waiter, sharing{others: Same}); got.OwnerTid != 0 {
			t.Errorf("%s: %+v", s.name, got)
		}
	}
}

// Of more threads of other processes than are held against one word nobody is named, and
// their mappings are not asked for without end.
func TestManyForeign(t *testing.T) {
	table := new(Table)
	waiter := table.Add(Thread{Tid: 100, Tgid: 100}, nil)
	table.Add(Thread{Tid: 7, Tgid: 100}, nil)
	for i := range uint32(500) {
		table.Add(Thread{Tid: 1000 + i, Tgid: 1000 + i}, []kcdata.LinuxThreadNS{{Inode: 5000 + i, Tid: 7}})
	}
	asked := counting{}
	f := lay(0, 0, waiters|7, 0, waiters|7, 1, 7, 1, 144, 0)
	if got := resolve(table, f, waiter, &asked); got.OwnerTid != 0 || got.Flags&found != kcdata.FutexOwnerUnsure || asked.n > maxForeign {
		t.Errorf("asked %d times: %+v", asked.n, got)
	}
}

type counting struct{ n int }

func (c *counting) Shares(*kcdata.LinuxFutex, uint32, uint32) Sharing { c.n++; return Apart }

// Where the kernel names another owner of a PI futex, the word names nobody.
func TestKernelCounts(t *testing.T) {
	table, at := world()
	const pi = kcdata.WaitPI | kcdata.WaitOwned
	for _, c := range []struct {
		w    kcdata.LinuxWait
		want uint32
	}{
		{kcdata.LinuxWait{Flags: pi, OwnerTid: 1001, OwnerStart: 5e9 + 1001}, kcdata.FutexOwned},
		{kcdata.LinuxWait{Flags: pi, OwnerTid: 2000, OwnerStart: 5e9 + 2000}, kcdata.FutexDiffers},
		{kcdata.LinuxWait{Flags: pi, OwnerTid: 1001, OwnerStart: 1}, kcdata.FutexDiffers},
		{kcdata.LinuxWait{Flags: kcdata.WaitPI, OwnerTid: 2000}, kcdata.FutexOwned},
		{kcdata.LinuxWait{Flags: kcdata.WaitField | kcdata.WaitOwned, OwnerTid: 2000}, kcdata.FutexOwned},
		{kcdata.LinuxWait{}, kcdata.FutexOwned},
	} {
		f := resolve(table, shapes[len(shapes)-2].make(1001), at[1000], sharing{})
		Kernel(f, &c.w)
		if f.Flags&found != c.want || (f.OwnerTid == 0) != (c.want == kcdata.FutexDiffers) {
			t.Errorf("%+v: %+v", c.w, f)
		}
	}
}

// named checks what Owner said of f against the table, by itself: an owner is one living thread
// of the waiter's process, or of one with the same memory, and its number in the waiter's own
// namespace is among the bytes.
func named(f *kcdata.LinuxFutex, table *Table, waiter int, mem sharing) error {
	const owner = kcdata.FutexOwned | kcdata.FutexOwnerDied | kcdata.FutexOwnerGone
	gone := f.Flags&kcdata.FutexOwnerGone != 0
	if f.OwnerTid == 0 {
		if f.Flags&kcdata.FutexOwned != 0 || f.OwnerTgid != 0 || f.OwnerStart != 0 {
			return fmt.Errorf("an owner without a number")
		}
		return nil
	}
	if bits.OnesCount32(f.Flags&owner) != 1 || f.Flags&found&^owner != 0 {
		return fmt.Errorf("flags %#x", f.Flags)
	}
	w := table.threads[waiter]
	in := map[uint32]bool{}
	for off := -16; off <= 20; off += 4 {
		in[bytesOf(f).at(off)] = true
		in[bytesOf(f).at(off)&tidMask] = true
	}
	for i, e := range table.threads {
		if e.Tid != f.OwnerTid || e.Tgid != f.OwnerTgid || e.Start != f.OwnerStart {
			continue
		}
		switch {
		case gone && e.Tgid == w.Tgid:
			return fmt.Errorf("of the same process")
		case !gone && e.Dead != (f.Flags&kcdata.FutexOwnerDied != 0):
			return fmt.Errorf("dead: %v", e.Dead)
		case !gone && e.Tgid != w.Tgid && (f.Flags&private != 0 || mem.Shares(f, w.Tgid, e.Tgid) != Same):
			return fmt.Errorf("of another process")
		}
		ok := w.own.ns == recorded && in[e.Tid]
		for _, l := range table.deeper {
			ok = ok || int(l.at) == i && l.ns == w.own.ns && in[l.tid]
		}
		if !ok {
			return fmt.Errorf("no number of it in namespace %d is among the bytes", w.own.ns)
		}
		return nil
	}
	return fmt.Errorf("the table does not have it")
}

// Random bytes, and real shapes with a few random changes, over random threads: no innocent
// thread is ever named.
func TestRandomBytesNameNobody(t *testing.T) {
	testneed.Live(t)
	rng := rand.New(rand.NewPCG(13, 2))
	number := func() uint32 { return 1 + rng.Uint32N(12) }
	owned := 0
	for range 200_000 {
		table := new(Table)
		for i := range uint32(3 + rng.IntN(10)) {
			var ns []kcdata.LinuxThreadNS
			for range rng.IntN(3) {
				ns = append(ns, kcdata.LinuxThreadNS{Inode: rng.Uint32N(4), Tid: rng.Uint32N(6)})
			}
			table.Add(Thread{Tid: 1 + i, Tgid: 1 + i%3, Start: uint64(i), Dead: rng.IntN(5) == 0}, ns)
		}
		mem := sharing{Sharing(rng.IntN(3)), map[[2]uint32]Sharing{{1, 2}: Sharing(rng.IntN(3)), {2, 1}: Sharing(rng.IntN(3))}}
		f := shapes[rng.IntN(len(shapes))].make(number())
		for range rng.IntN(3) {
			v := []uint32{0, 1, 2, number(), waiters | number(), rng.Uint32()}[rng.IntN(6)]
			binary.LittleEndian.PutUint32(f.Around[4*rng.IntN(10):], v)
		}
		if rng.IntN(10) == 0 {
			for i := range f.Around {
				f.Around[i] = byte(rng.Uint32())
			}
		}
		waiter := rng.IntN(table.Len())
		got := resolve(table, f, waiter, mem)
		if err := named(got, table, waiter, mem); err != nil {
			t.Fatalf("%v: %+v of %+v, waiter %d", err, got, table, waiter)
		}
		if got.Flags&kcdata.FutexOwned != 0 {
			owned++
		}
	}
	if owned < 5_000 {
		t.Errorf("%d owners: this proves nothing", owned)
	}
}

func FuzzOwner(f *testing.F) {
	for _, s := range shapes {
		one := s.make(1001)
		f.Add(one.Around[:], one.Flags, one.Op, one.Expected, one.Have, uint8(one.Addr&4)<<1)
	}
	f.Fuzz(func(t *testing.T, around []byte, flags, op, expect, have uint32, who uint8) {
		one := &kcdata.LinuxFutex{Addr: 0x1000 + uint64(who&8)>>1, Flags: flags, Op: op, Expected: expect, Have: have}
		copy(one.Around[:], around)
		table, _ := world()
		waiter, mem := int(who)%table.Len(), sharing{others: Sharing(who % 3)}
		got := resolve(table, one, waiter, mem)
		if err := named(got, table, waiter, mem); err != nil {
			t.Fatalf("%v: %+v", err, got)
		}
	})
}

func offBy4(f *kcdata.LinuxFutex) *kcdata.LinuxFutex { f.Addr += 4; return f }

// Words that threads wait for and that are no object here, though there is a thread of that number
// in the process: nothing is said.
func TestNotObjects(t *testing.T) {
	table := new(Table)
	for tid := range uint32(40) {
		table.Add(Thread{Tid: 1 + tid, Tgid: 1}, nil)
	}
	for name, f := range map[string]*kcdata.LinuxFutex{
		"joinstate of glibc 2.43":                          lay(0, 9, 2, -16, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0),
		"a lock of stdio, by glibc":                        lay(private, 0, 2, 0, 2, 1, 7, 0x7f12, 0, 0),
		"a lock of stdio, by musl":                         lay(private, 0, ownerDied|7, -4, 1, ownerDied|7, 10, 0, 0, 2, 0x3000f010),
		"an internal lock of glibc":                        lay(private, 0, 2, 0, 2, 0, 0, 0, 0, 0),
		"an internal lock of musl":                         lay(private, 0, waiters|1, 0, waiters|1, 0, 0, 0, 0, 0),
		"musl's list of threads":                           lay(0, 0, 7, -4, 0, 7, 0, 0, 0, 0, 0),
		"a tid alone":                                      lay(0, 9, 7, 0, 7),
		"a count":                                          lay(private, 0, 7, 0, 7),
		"a mutex that was just unlocked":                   lay(private, 0, 2, 0, 2, 0, 0, 0, 0, 0),
		"a locked mutex, its owner not noted":              lay(private, 0, 2, 0, 2, 0, 0, 1, 0, 0),
		"an elided mutex":                                  lay(private, 0, 2, 0, 2, 0, 0, 0, 256, 1<<16),
		"a mutex of Rust, whose data are a number and 1":   lay(private, 9, 2, 0, 2, 0, 7, 1, 2, 0),
		"a condition variable of Rust, waited for a while": offBy4(lay(private|kcdata.FutexTimed, 9, 2, 0, 2, 0, 7, 1, 0, 0)),
		"an adaptive mutex that was spun for too long":     lay(private, 0, 2, 0, 2, 0, 7, 1, 3, 1<<15),
		"an adaptive mutex with elision, not allowed":      lay(private, 0, 2, 0, 2, 0, 7, 1, 3, 1<<16),
		"an elided mutex that was spun for":                lay(private, 0, 2, 0, 2, 0, 7, 1, 256, 1<<16|1),
		"a write phase without a writer":                   lay(private, 9, 3, -8, 11, 0, 3, 1, 0, 0, 0, 0),
	} {
		if got := resolve(table, f, 0, sharing{others: Same}); got.Object != 0 || got.OwnerTid != 0 || got.Flags&found != 0 {
			t.Errorf("%s: object %d, owner %d, flags %#x", name, got.Object, got.OwnerTid, got.Flags)
		}
	}
}
