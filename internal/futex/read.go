package futex

import (
	"encoding/binary"

	"stackshot/kcdata"
)

// Calls of futex(2) that wait, by LinuxFutex.Op.
const (
	opWait       = 0 // futex_wait and futex_waitv too
	opLockPI     = 6
	opWaitBitset = 9
	opLockPI2    = 13
)

// The word of a PI futex and of a robust one, see futex(2).
const (
	waiters   = 0x80000000
	ownerDied = 0x40000000
	tidMask   = 0x3fffffff
)

// maxNumber is the largest number that a thread can have (PID_MAX_LIMIT of linux/threads.h).
const maxNumber = 1 << 22

// Reading is one thing that the bytes around a futex word may be.
type Reading struct {
	Object  uint32 // kcdata.Futex*
	Number  uint32 // of the owner, in some pid namespace; 0: nobody is named
	Died    bool   // the owner died with the lock held; Number is what it was
	Users   uint32 // threads that use the object, at least; more than there are is impossible
	Write   bool   // a reader-writer lock: the waiter wants to write
	OwnSelf bool   // the library lets a thread wait for what it holds itself
	Joined  bool   // the owner is a thread of the same process that has not ended
	Kernel  bool   // the kernel gives the number its meaning, in the waiter's pid namespace
}

// Read gives what f's bytes may be; none: nothing that is known here. It looks at f alone, so
// the caller still has to find out whether Number is a thread. Of a futex_waitv nothing is read: no
// library here calls it.
func Read(f *kcdata.LinuxFutex) []Reading {
	b := bytesOf(f)
	switch {
	case f.Op == opLockPI || f.Op == opLockPI2:
		return some(b.pi)
	case f.Flags&(kcdata.FutexPI|kcdata.FutexCompat|kcdata.FutexWaitv) != 0 || f.Op != opWait && f.Op != opWaitBitset:
		return nil
	}
	return some(b.glibcMutex, b.glibcRWLock, b.glibcJoin, b.muslMutex, b.muslJoin)
}

func some(layouts ...func() (Reading, bool)) (out []Reading) {
	for _, layout := range layouts {
		if r, ok := layout(); ok {
			out = append(out, r)
		}
	}
	return out
}

// before is how many bytes of LinuxFutex.Around lie before the word.
const before = 16

// words is the bytes around a futex word.
type words struct {
	*kcdata.LinuxFutex
}

func bytesOf(f *kcdata.LinuxFutex) words { return words{f} }

// at is the u32 at a distance of off bytes from the word: -16, -12, ... 20.
func (b words) at(off int) uint32 { return binary.LittleEndian.Uint32(b.Around[before+off:]) }

// pointer is the u64 at a distance of off bytes from the word: -16, -12, ... 16.
func (b words) pointer(off int) uint64 { return binary.LittleEndian.Uint64(b.Around[before+off:]) }

// has reports whether the bytes from one distance to another were read.
func (b words) has(from, to int) bool {
	for off := from; off < to; off += 4 {
		if b.Have&(1<<((before+off)/4)) == 0 {
			return false
		}
	}
	return true
}

// begins reports whether an object may begin at a distance of off bytes from the word: all have
// members of 8 bytes, and lie so.
func (b words) begins(off int) bool { return (b.Addr+uint64(off))%8 == 0 }

func (b words) private() bool { return b.Flags&kcdata.FutexPrivate != 0 }

// userPointer reports whether v may be an address in user memory of a 64-bit program.
func userPointer(v uint64) bool { return v >= 1<<12 && v < 1<<56 }

func isNumber(v uint32) bool { return v > 0 && v <= maxNumber }

// pi is the word of a PI futex, as the kernel defines it. FUTEX_OWNER_DIED beside a number
// belongs to an owner before that one.
func (b words) pi() (Reading, bool) {
	word, ok := b.Word()
	r := Reading{Object: kcdata.FutexPIWord, Number: word & tidMask, Died: word&tidMask == 0 && word&ownerDied != 0, Kernel: true}
	return r, ok && (isNumber(r.Number) || r.Died)
}
