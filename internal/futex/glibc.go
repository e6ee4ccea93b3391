package futex

import (
	"math"

	"stackshot/kcdata"
)

// Bits of __kind of a pthread_mutex_t (nptl/pthreadP.h).
const (
	kindMask      = 3 // the type:
	kindRecursive = 1
	kindErrcheck  = 2
	kindAdaptive  = 3
	kindRobust    = 16
	kindProtect   = 64 // PTHREAD_PRIO_PROTECT
	kindShared    = 128
	kindElision   = 256 // amd64 before 2.43
	kindNoElision = 512 // likewise
)

// Values of __owner of a robust mutex that are no number: its last owner died, and the present
// one has not called pthread_mutex_consistent; or it never did.
const (
	inconsistent   = math.MaxInt32
	notRecoverable = math.MaxInt32 - 1
)

// With PTHREAD_PRIO_PROTECT the upper bits of the word are the priority ceiling.
const ceilingMask = 0xfff80000

// glibcMutex is a pthread_mutex_t whose word is waited for: word, __count at 4, __owner at 8,
// __nusers at 12, __kind at 16, spins and elision at 20.
func (b words) glibcMutex() (r Reading, ok bool) {
	if !b.has(0, 24) || !b.lockCall() || !b.begins(0) {
		return r, false
	}
	word, count, owner, kind := b.at(0), b.at(4), b.at(8), b.at(16)
	base := kind & kindMask
	if kind&^(kindMask|kindRobust|kindProtect|kindShared|kindElision|kindNoElision) != 0 || !spun(kind, b.at(20)) {
		return r, false
	}
	r = Reading{Object: kcdata.FutexGlibcMutex, Number: owner, Users: b.at(12), OwnSelf: base != kindRecursive && base != kindErrcheck}
	shared := kind&kindShared != 0
	switch robust, protect := kind&kindRobust != 0, kind&kindProtect != 0; {
	case robust:
		ok = !protect && !b.private() && heldOnce(base, count) && b.robust(&r, word, owner)
	case protect:
		ok = shared != b.private() && heldOnce(base, count) && b.protected(word)
	case base == kindRecursive:
		ok = shared != b.private() && count > 0 && b.simple(word)
	default:
		ok = shared != b.private() && count == 0 && b.simple(word)
	}
	return r, ok && r.Users > 0 && (isNumber(r.Number) || r.Died)
}

// lockCall: a wait for a mutex of glibc is FUTEX_WAIT (futex_wait of sysdeps/nptl/futex-internal.h),
// and one with a timeout is that or FUTEX_WAIT_BITSET, by the version. Rust's standard library calls
// FUTEX_WAIT_BITSET always, and keeps the program's own data where __owner would be.
func (b words) lockCall() bool {
	return b.Op == opWait || b.Op == opWaitBitset && b.Flags&kcdata.FutexTimed != 0
}

// spun: how long an adaptive mutex was spun for, and above it, on amd64 before 2.43, what elision counts.
func spun(kind, v uint32) bool {
	spins, elision := v&0xffff, v>>16
	return (spins == 0 || kind&kindMask == kindAdaptive && spins <= math.MaxInt16) && (elision == 0 || kind&kindElision != 0)
}

// heldOnce: the kinds that are locked by __pthread_mutex_lock_full count, whatever their type.
func heldOnce(base, count uint32) bool { return count == 1 || base == kindRecursive && count > 0 }

// simple is the word of most kinds: 1 locked, 2 locked and perhaps waited for. Who waits
// writes 2 first.
func (b words) simple(word uint32) bool { return (word == 1 || word == 2) && b.Expected == 2 }

func (b words) protected(word uint32) bool {
	ceiling, low := word&ceilingMask, word&^ceilingMask
	return ceiling > 0 && (low == 1 || low == 2) && b.Expected == ceiling|2
}

// robust takes the owner out of a robust mutex's word. When the kernel marks a death, it clears
// the number in the word (handle_futex_death of kernel/futex/core.c); __owner still has it.
func (b words) robust(r *Reading, word, owner uint32) bool {
	if b.Expected&waiters == 0 {
		return false
	}
	tid := word & tidMask
	if r.Died = word&ownerDied != 0; r.Died {
		if !isNumber(owner) {
			r.Number = 0
		}
		return tid == 0 && (isNumber(owner) || owner == inconsistent || owner == notRecoverable)
	}
	r.Number = tid
	return owner == tid || owner == inconsistent || owner == notRecoverable
}

// Bits of __readers of a pthread_rwlock_t, and of its two futex words (nptl/pthreadP.h).
const (
	rwWritePhase = 1
	rwWriteLock  = 2
	rwWaiting    = 4 // readers wait for __readers itself
	rwReaders    = 3 // shift
	rwUsed       = 2
	rwHandover   = 1 << 31 // of __writers, beside how many wait
)

// glibcRWLock is a pthread_rwlock_t: __readers at 0, __writers at 4, __wrphase_futex at 8,
// __writers_futex at 12, 0 at 16 and 20, __cur_writer at 24, __shared at 28, 0 at 32. Who waits, waits for one
// of three of these words (the states are in nptl/pthread_rwlock_common.c).
//
// The call is always FUTEX_WAIT_BITSET (futex_abstimed_wait of sysdeps/nptl/futex-internal.h).
func (b words) glibcRWLock() (Reading, bool) {
	if b.Op != opWaitBitset {
		return Reading{}, false
	}
	for _, read := range []func() (Reading, bool){b.rwPhase, b.rwWriters, b.rwReadersWord} {
		if r, ok := read(); ok {
			return r, true
		}
	}
	return Reading{}, false
}

// rwPhase: the word is __wrphase_futex. A reader waits for the end of a write phase, or the
// first writer for the readers' end.
func (b words) rwPhase() (r Reading, ok bool) {
	if !b.has(-8, 24) || !b.begins(-8) || !b.rwFields(8, 12, 16, 20) || b.at(4) > 1|rwUsed || b.at(-4)&^rwHandover > maxNumber {
		return r, false
	}
	readers := b.at(-8)
	r = Reading{Object: kcdata.FutexGlibcRWLock}
	if b.Expected == 1|rwUsed { // a reader
		r.Number = b.at(16)
		return r, b.at(0) == 1|rwUsed && readers&(rwWritePhase|rwWriteLock) == rwWritePhase|rwWriteLock && readers>>rwReaders > 0 && isNumber(r.Number)
	}
	r.Write = true
	return r, b.Expected == rwUsed && b.at(0) == rwUsed && readers&(rwWritePhase|rwWriteLock) == rwWriteLock &&
		readers>>rwReaders > 0 && b.at(16) == 0
}

// rwWriters: the word is __writers_futex. A writer waits for the first one, which has the lock
// or waits for readers itself.
func (b words) rwWriters() (r Reading, ok bool) {
	if !b.has(-12, 24) || !b.begins(-12) || !b.rwFields(4, 8, 12, 16) || b.at(20) != 0 || b.Expected != 1|rwUsed || b.at(0)&1 == 0 || b.at(0) > 1|rwUsed ||
		b.at(-4) > 1|rwUsed || b.at(-8)&^rwHandover > maxNumber {
		return r, false
	}
	readers := b.at(-12)
	r = Reading{Object: kcdata.FutexGlibcRWLock, Number: b.at(12), Write: true}
	if readers&rwWriteLock == 0 {
		return r, false
	}
	if readers&rwWritePhase == 0 {
		return r, r.Number == 0 && readers>>rwReaders > 0
	}
	return r, isNumber(r.Number)
}

// rwReadersWord: the word is __readers. A reader lets a writer go first, which waits for the
// readers' end.
func (b words) rwReadersWord() (r Reading, ok bool) {
	if !b.has(0, 24) {
		return r, false
	}
	word, phase, writers := b.at(0), b.at(8), b.at(12)
	return Reading{Object: kcdata.FutexGlibcRWLock},
		word&(rwWritePhase|rwWriteLock|rwWaiting) == rwWriteLock|rwWaiting && word>>rwReaders > 0 && b.Expected&rwWaiting != 0 &&
			phase&^rwUsed == 0 && writers&^rwUsed == 1 && b.at(16) == 0 && b.at(20) == 0
}

// rwFields: two words of padding, the writer, and __shared.
func (b words) rwFields(pad1, pad2, writer, shared int) bool {
	w, s := b.at(writer), b.at(shared)
	return b.at(pad1) == 0 && b.at(pad2) == 0 && w <= maxNumber && s <= 1 && (s == 0) == b.private()
}

// glibcJoin is the field tid of a struct pthread (nptl/descr.h), which the kernel clears when the
// thread ends: before it the two pointers of a list, behind it 4 bytes that nobody uses and the head
// of the list of robust mutexes. The call is never private.
func (b words) glibcJoin() (r Reading, ok bool) {
	if !b.has(-16, 24) || !b.begins(-16) {
		return r, false
	}
	word := b.at(0)
	r = Reading{Object: kcdata.FutexGlibcJoin, Number: word, Joined: true}
	return r, !b.private() && isNumber(word) && b.Expected == word && b.at(4) == 0 && listLink(b.pointer(-16)) && listLink(b.pointer(-8)) &&
		listLink(b.pointer(8)&^1) && listLink(b.pointer(16)&^1)
}

func listLink(v uint64) bool { return userPointer(v) && v%8 == 0 }
