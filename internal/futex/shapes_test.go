package futex

import (
	"encoding/binary"
	"math"

	"stackshot/kcdata"
)

// shape is the bytes around a word of one kind, locked by a thread with a number.
type shape struct {
	name   string
	object uint32
	make   func(number uint32) *kcdata.LinuxFutex
	shared bool  // a call without FUTEX_PRIVATE_FLAG
	self   bool  // a thread may wait for itself
	free   []int // distances of words that may hold anything
}

// lay makes a futex of words, the first at a distance of from bytes; that is where an object begins.
func lay(flags, op, expect uint32, from int, words ...uint32) *kcdata.LinuxFutex {
	f := &kcdata.LinuxFutex{Addr: uint64(0x7f1200001010 - from), Flags: flags, Op: op, Expected: expect, Have: 0x3ff}
	for i, v := range words {
		put(f, from+4*i, v)
	}
	return f
}

const private = kcdata.FutexPrivate

var before4 = []int{-16, -12, -8, -4}

// shapes are all objects that name an owner.
var shapes = []shape{
	{"glibc normal", kcdata.FutexGlibcMutex, func(n uint32) *kcdata.LinuxFutex { return lay(private, 0, 2, 0, 2, 0, n, 1, 0, 0) }, false, true, before4},
	{"glibc normal, no elision, with a timeout", kcdata.FutexGlibcMutex, func(n uint32) *kcdata.LinuxFutex { return lay(private|kcdata.FutexTimed, 9, 2, 0, 1, 0, n, 1, 512, 0) }, false, true, before4},
	{"glibc recursive", kcdata.FutexGlibcMutex, func(n uint32) *kcdata.LinuxFutex { return lay(private, 0, 2, 0, 2, 3, n, 1, 1, 0) }, false, false, before4},
	{"glibc errorcheck, shared", kcdata.FutexGlibcMutex, func(n uint32) *kcdata.LinuxFutex { return lay(0, 0, 2, 0, 2, 0, n, 1, 130, 0) }, true, false, before4},
	{"glibc adaptive", kcdata.FutexGlibcMutex, func(n uint32) *kcdata.LinuxFutex { return lay(private, 0, 2, 0, 2, 0, n, 1, 3, 17) }, false, true, before4},
	{"glibc robust", kcdata.FutexGlibcMutex, func(n uint32) *kcdata.LinuxFutex { return lay(0, 0, waiters|n, 0, waiters|n, 1, n, 1, 144, 0) }, true, true, before4},
	{"glibc robust, inconsistent", kcdata.FutexGlibcMutex, func(n uint32) *kcdata.LinuxFutex {
		return lay(0, 0, waiters|n, 0, waiters|n, 1, math.MaxInt32, 1, 144, 0)
	}, true, true, before4},
	{"glibc protect", kcdata.FutexGlibcMutex, func(n uint32) *kcdata.LinuxFutex { return lay(private, 0, 5<<19|2, 0, 5<<19|2, 1, n, 1, 64, 0) }, false, true, before4},
	{"glibc rwlock, reader", kcdata.FutexGlibcRWLock, func(n uint32) *kcdata.LinuxFutex { return lay(private, 9, 3, -8, 11, 0, 3, 1, 0, 0, n, 0) }, false, false, []int{-16, -12}},
	{"glibc rwlock, writer", kcdata.FutexGlibcRWLock, func(n uint32) *kcdata.LinuxFutex { return lay(0, 9, 3, -12, 3, 1, 1, 3, 0, 0, n, 1) }, true, false, []int{-16}},
	{"glibc join", kcdata.FutexGlibcJoin, func(n uint32) *kcdata.LinuxFutex {
		return lay(0, 9, n, -16, 0x1000f000, 0x7f12, 0x2000f000, 0x7f12, n, 0, 0x3000f010, 0x7f12, 0x3000f010, 0x7f12)
	}, true, false, nil},
	{"musl recursive", kcdata.FutexMuslMutex, func(n uint32) *kcdata.LinuxFutex {
		return lay(private, 0, waiters|n, -4, 1, waiters|n, 1, 0, 0, 2, 0x3000f010)
	}, false, false, []int{-16, -12, -8}},
	{"musl robust", kcdata.FutexMuslMutex, func(n uint32) *kcdata.LinuxFutex {
		return lay(private, 0, waiters|n, -4, 4, n, 2, 0, 0, 0, 0x3000f010)
	}, false, true, []int{-16, -12, -8}},
	{"musl errorcheck, shared", kcdata.FutexMuslMutex, func(n uint32) *kcdata.LinuxFutex {
		return lay(0, 0, waiters|n, -4, 130, waiters|n, 1, 0, 0, 0, 0x3000f010)
	}, true, false, []int{-16, -12, -8}},
	{"musl join", kcdata.FutexMuslJoin, func(n uint32) *kcdata.LinuxFutex {
		return lay(private, 0, 2, -8, n, 0, 2, 0, 0, 0, 0x3000f000, 0x7f12)
	}, false, false, []int{-16, -12, -4}},
	{"PI", kcdata.FutexPIWord, func(n uint32) *kcdata.LinuxFutex {
		return lay(private|kcdata.FutexPI, opLockPI, 0, 0, waiters|n, 1, 2, 3, 4)
	}, false, false, nil},
	{"PI, shared, 32-bit", kcdata.FutexPIWord, func(n uint32) *kcdata.LinuxFutex {
		return lay(kcdata.FutexPI|kcdata.FutexCompat, opLockPI2, 0, 0, waiters|ownerDied|n)
	}, true, false, nil},
}

// unnamed are objects that are known and name nobody.
var unnamed = []struct {
	name   string
	object uint32
	flags  uint32 // of found
	f      *kcdata.LinuxFutex
}{
	{"musl normal", kcdata.FutexMuslNormal, 0, lay(private, 0, waiters|muslBusy, -4, 0, waiters|muslBusy, 1, 0, 0, 0, 0)},
	{"musl normal, shared", kcdata.FutexMuslNormal, 0, lay(0, 0, waiters|muslBusy, -4, 128, muslBusy, 2, 0, 0, 0, 0)},
	{"glibc rwlock, readers hold it", kcdata.FutexGlibcRWLock, 0, lay(private, 9, 2, -8, 10, 0, 2, 1, 0, 0, 0, 0)},
	{"glibc rwlock, a writer behind one behind readers", kcdata.FutexGlibcRWLock, 0, lay(private, 9, 3, -12, 10, 0, 2, 3, 0, 0, 0, 0)},
	{"glibc rwlock, a reader behind a writer behind readers", kcdata.FutexGlibcRWLock, 0, lay(private, 9, 14, 0, 14, 0, 2, 1, 0, 0)},
	{"glibc robust, owner died", kcdata.FutexGlibcMutex, kcdata.FutexOwnerDied, lay(0, 0, waiters|9, 0, waiters|ownerDied, 1, 999, 1, 144, 0)},
	{"musl robust, owner died", kcdata.FutexMuslMutex, kcdata.FutexOwnerDied, lay(private, 0, waiters|9, -4, 4, waiters|ownerDied, 1, 0, 0, 0, 0)},
	{"PI, owner died", kcdata.FutexPIWord, kcdata.FutexOwnerDied, lay(private|kcdata.FutexPI, opLockPI, 0, 0, waiters|ownerDied)},
}

// resolve is what Owner makes of a futex.
func resolve(table *Table, f *kcdata.LinuxFutex, waiter int, mem Memory) *kcdata.LinuxFutex {
	x, out := table.Index(), *f
	x.Want(&out, waiter)
	x.Look()
	x.Owner(&out, waiter, mem)
	return &out
}

// noMemory says of all that it is not known.
type noMemory struct{}

func (noMemory) Shares(*kcdata.LinuxFutex, uint32, uint32) Sharing { return Unsure }

func put(f *kcdata.LinuxFutex, off int, v uint32) {
	binary.LittleEndian.PutUint32(f.Around[before+off:], v)
	f.Have |= 1 << ((before + off) / 4)
}
