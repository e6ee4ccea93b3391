package futex

import "stackshot/kcdata"

// Bits of _m_type of musl's pthread_mutex_t.
const (
	muslType      = 3
	muslRecursive = 1
	muslErrcheck  = 2
	muslRobust    = 4
	muslShared    = 128
)

// muslBusy is what the word of a locked normal mutex holds: EBUSY.
const muslBusy = 16

// muslMutex is musl's pthread_mutex_t: _m_type 4 bytes before the word, _m_waiters at 4, two
// unused words, _m_count at 16, the links of the owner's list at 20 and 28. A normal mutex (not robust,
// not PI) keeps no owner. With PI the kernel has the word, and the call is another. musl waits by
// FUTEX_WAIT alone (src/thread/__timedwait.c).
func (b words) muslMutex() (r Reading, ok bool) {
	if !b.has(-4, 24) || !b.begins(-4) || b.Op != opWait {
		return r, false
	}
	kind, word, count, link := b.at(-4), b.at(0), b.at(16), b.at(20)
	if kind&^(muslType|muslRobust|muslShared) != 0 || kind&muslType == muslType || (kind&muslShared == 0) != b.private() ||
		b.Expected&waiters == 0 || b.at(8) != 0 || b.at(12) != 0 {
		return r, false
	}
	users := b.at(4)
	if kind&(muslType|muslRobust) == 0 {
		return Reading{Object: kcdata.FutexMuslNormal, Users: users},
			word&^waiters == muslBusy && b.Expected == muslBusy|waiters && users > 0 && count == 0 && link == 0
	}
	r = Reading{Object: kcdata.FutexMuslMutex, Number: word & tidMask, Users: users,
		OwnSelf: kind&muslType == 0}
	if word&^waiters == ownerDied { // its list was walked when it ended
		r.Died = true
		return r, users > 0
	}
	once := count == 0 || kind&muslType == muslRecursive && count < 1<<31
	return r, users > 0 && isNumber(r.Number) && (word&ownerDied == 0 || kind&muslRobust != 0) && once && link != 0
}

// muslJoin is detach_state of musl's struct pthread: tid 8 bytes before it, errno, then cancel
// at 4, four bytes of flags at 8, padding, and the address of its memory at 16.
func (b words) muslJoin() (r Reading, ok bool) {
	const exiting, joinable = 1, 2
	if !b.has(-8, 24) || !b.begins(-8) || b.Op != opWait {
		return r, false
	}
	word, flags, memory := b.at(0), b.at(8), b.pointer(16)
	r = Reading{Object: kcdata.FutexMuslJoin, Number: b.at(-8), Joined: true}
	return r, b.private() && (word == joinable || word == exiting) && (b.Expected == joinable || b.Expected == exiting) &&
		isNumber(r.Number) && b.at(4) <= 1 && flags&0xff <= 2 && flags>>8&0xff <= 1 && flags>>16 <= 3 && b.at(12) == 0 &&
		userPointer(memory) && memory%4096 == 0
}
