package kcdata

// What a thread waits for, as the window records it, and what collation makes of the words of
// user memory. Structs and ids follow the rules of linux.go.
const (
	TypeLinuxWaitTaken Type = 0x4C1B // LinuxWaitTaken, top level after the tasks; absent with --wait off and engine procfs
	TypeLinuxWait      Type = 0x4CC0 // LinuxWait, in a THREAD of which it says something
	TypeLinuxFutex     Type = 0x4CC1 // array of LinuxFutex, in a THREAD that is in a futex call: one for each word
)

// Bits of LinuxWait.Flags.
const (
	WaitField      = 1 << 0  // lock and kind: from the task's own fields (blocked_on, blocker)
	WaitScan       = 1 << 1  // lock and kind: from the scan of its kernel stack
	WaitPI         = 1 << 2  // lock: from pi_blocked_on; the kind is an rt_mutex
	WaitOwned      = 1 << 3  // the lock's owner word leads to a task: owner_tid, owner_tgid, owner_start
	WaitReaders    = 1 << 4  // readers hold the lock; the kernel does not keep their names
	WaitLastHolder = 1 << 5  // a semaphore: the owner is the thread that took it last, which may have given it up
	WaitFree       = 1 << 6  // the owner word is 0: the lock has no owner, or keeps none; or a mutex was handed to this very thread, which did not run since
	WaitBadOwner   = 1 << 7  // the owner word does not lead to ordinary memory
	WaitIO         = 1 << 8  // in_iowait
	WaitTraced     = 1 << 9  // a tracer is attached: peer_*, unless WaitVfork is set too
	WaitVfork      = 1 << 10 // the thread peer_* waits in vfork until this one executes a program or ends
	WaitFrozen     = 1 << 11 // frozen, by a control group's freezer or for a suspend
	WaitScanned    = 1 << 12 // in D without a field: its kernel stack was scanned; scan says how that ended
	WaitFewFutexes = 1 << 13 // the call waits for more futexes than the file has
	WaitFewFiles   = 1 << 14 // the call waits at more open files than the file has; files says at how many
)

// Kinds of a kernel lock, LinuxWait.Kind.
const (
	LockNone       = 0 // no lock is known
	LockMutex      = 1 // a mutex; a ww_mutex too
	LockSemaphore  = 2 // a counting semaphore
	LockRWSemRead  = 3 // the thread wants to read
	LockRWSemWrite = 4 // the thread wants to write
	LockRTMutex    = 5 // an rt_mutex; with PREEMPT_RT every lock that sleeps is one
	LockRWSem      = 6 // a scan cannot tell what it wants
)

// How a scan of a kernel stack ended, LinuxWait.Scan.
const (
	ScanNone    = 0 // there was none
	ScanFound   = 1 // the lock is known
	ScanNoPath  = 2 // no return address into the slow path of a lock: it waits for something else
	ScanNoRing  = 3 // a slow path, and no waiter record whose neighbours point back
	ScanNoLock  = 4 // a ring of waiters, and no lock
	ScanTooLong = 5 // the ring has more waiters than are followed
	ScanUnread  = 6 // the stack, or a waiter, is not ordinary memory
)

// LinuxWait is what the kernel's own memory says a thread waits for. Source: task_struct
// (blocked_on, "locking/mutex: Rework task_struct::blocked_on", in 6.17; blocker,
// "hung_task: Replace blocker_mutex with encoded blocker", in 6.16; pi_blocked_on), the locks
// themselves, and the waiter records in the thread's kernel stack.
type LinuxWait struct {
	Flags      uint32 `kc:"flags"`       // Wait*
	Kind       uint32 `kc:"kind"`        // Lock*
	Lock       uint64 `kc:"lock"`        // its address; redacted: a number, the same for the same lock; 0: not known
	OwnerTid   uint32 `kc:"owner_tid"`   // in the recorded pid namespace; 0: not known
	OwnerTgid  uint32 `kc:"owner_tgid"`  // likewise
	OwnerStart uint64 `kc:"owner_start"` // its start_boottime, ns
	PeerTid    uint32 `kc:"peer_tid"`    // with WaitVfork who waits, else with WaitTraced the tracer
	PeerTgid   uint32 `kc:"peer_tgid"`   // likewise
	PeerStart  uint64 `kc:"peer_start"`  // its start_boottime, ns
	Scan       uint32 `kc:"scan"`        // Scan*
	Hops       uint32 `kc:"hops"`        // the scan: the thread's place among those who wait, the first is 1; with ScanTooLong how many were followed
	Files      uint32 `kc:"files"`       // descriptors in the call; of an epoll itself and what was met of its set, so no total; of poll's rows behind the first 256 without a look; 0: the call has none
	Reserved   uint32 `kc:"reserved"`
}

// Bits of LinuxFutex.Flags.
const (
	FutexPrivate     = 1 << 0  // FUTEX_PRIVATE_FLAG: the word counts within its process
	FutexPI          = 1 << 1  // a call with priority inheritance: the kernel defines the word
	FutexTimed       = 1 << 2  // the call has a timeout
	FutexAbsent      = 1 << 3  // a page of these bytes is not present; have says which words are there
	FutexRefused     = 1 << 4  // a page of these bytes is not ordinary memory of this task
	FutexCompat      = 1 << 5  // the call is of the 32-bit ABI
	FutexWaitv       = 1 << 6  // one of several words of futex_waitv
	FutexOwned       = 1 << 8  // collation: the bytes around the word are those of object, and name a living owner
	FutexAmbiguous   = 1 << 9  // collation: more than one thread may be the one that the bytes name
	FutexOwnerDied   = 1 << 10 // collation: the word says that its owner died with the lock held (FUTEX_OWNER_DIED), or the owner it names is a zombie
	FutexOwnerGone   = 1 << 11 // collation: the bytes name an owner that the file does not have, or a thread of a process that does not have the word
	FutexOwnerUnsure = 1 << 12 // collation: whether the owner maps the same memory could not be found out, so it is not named
	FutexDiffers     = 1 << 13 // collation: the kernel names another owner (LinuxWait), which counts
)

// What the bytes around a futex word are, LinuxFutex.Object.
const (
	FutexUnknown     = 0 // no layout fits
	FutexGlibcMutex  = 1 // a mutex of glibc, of any type
	FutexGlibcRWLock = 2 // the owner is a writer; none: readers hold it
	FutexGlibcJoin   = 3 // the owner is the thread that is waited for
	FutexMuslMutex   = 4 // one that keeps its owner: recursive, errorcheck, robust
	FutexMuslNormal  = 5 // musl's normal mutex keeps no owner
	FutexPIWord      = 6 // the word of a PI futex, as the kernel defines it
	FutexMuslJoin    = 7 // the owner is the thread that is waited for
)

// LinuxFutex is one word that a thread waits for in a futex call (futex, futex_wait,
// futex_waitv), with the bytes around it. Sources: the saved registers, user memory, and for
// the fields marked "collation" the layouts of glibc (sysdeps/nptl/bits/struct_mutex.h,
// struct_rwlock.h) and musl (src/internal/pthread_impl.h).
type LinuxFutex struct {
	Addr       uint64   `kc:"addr"`  // the word's address in its process; redacted: a number, the same for the same word
	Place      uint64   `kc:"place"` // where the kernel sees the word: two processes that share it have the same; redacted or not read: 0
	Flags      uint32   `kc:"flags"` // Futex*
	Op         uint32   `kc:"op"`    // of the futex call, without its flags (FUTEX_WAIT and so on); 0 for futex_wait and futex_waitv
	Expected   uint32   `kc:"expected"`
	Have       uint32   `kc:"have"`       // bit i: the four bytes at around[4*i] were read
	Around     [40]byte `kc:"around"`     // from 16 bytes before the word to 24 behind its beginning; redacted: 0
	Object     uint32   `kc:"object"`     // collation: Futex* objects
	OwnerTid   uint32   `kc:"owner_tid"`  // collation: in the recorded pid namespace; with FutexOwned the owner, with FutexOwnerDied the zombie that was it, with FutexOwnerGone the thread of another process that has its number; else 0
	OwnerTgid  uint32   `kc:"owner_tgid"` // collation
	Reserved   uint32   `kc:"reserved"`
	OwnerStart uint64   `kc:"owner_start"` // collation: its start_boottime, ns
}

// Word is the futex word; ok is false if it was not read.
func (f *LinuxFutex) Word() (word uint32, ok bool) {
	at := f.Around[16:20]
	return uint32(at[0]) | uint32(at[1])<<8 | uint32(at[2])<<16 | uint32(at[3])<<24, f.Have&(1<<4) != 0
}

// Sources of LinuxWait that the kernel has, LinuxWaitTaken.Sources.
const (
	WaitHasBlockedOn = 1 << 0 // task_struct.blocked_on
	WaitHasBlocker   = 1 << 1 // task_struct.blocker
	WaitHasPI        = 1 << 2 // task_struct.pi_blocked_on
	WaitHasScan      = 1 << 3 // stacks in D can be scanned: the names of the slow paths are known
	WaitHasRing      = 1 << 4 // the kernel's locks have no list head (first_waiter, 2026)
	WaitHasWords     = 1 << 5 // user memory can be read
	WaitHasFrozen    = 1 << 6 // task_struct.frozen, or a state of its own
)

// LinuxWaitTaken sums up the LinuxWait and LinuxFutex of all threads.
type LinuxWaitTaken struct {
	Sources uint32 `kc:"sources"` // WaitHas*
	Threads uint32 `kc:"threads"` // with a LinuxWait
	Fields  uint32 `kc:"fields"`  // locks from fields
	Scanned uint32 `kc:"scanned"` // stacks that were scanned
	Scans   uint32 `kc:"scans"`   // locks from scans
	NoPath  uint32 `kc:"no_path"` // scans that met no slow path of a lock
	Unsound uint32 `kc:"unsound"` // scans that met one and found no lock: ScanNoRing, ScanNoLock, ScanTooLong, ScanUnread
	Futexes uint32 `kc:"futexes"`
	Absent  uint32 `kc:"absent"`  // of these, those whose bytes are not all present
	Refused uint32 `kc:"refused"` // of these, those whose bytes are not ordinary memory
	Owned   uint32 `kc:"owned"`   // of these, those whose owner was found
	Unsure  uint32 `kc:"unsure"`  // of these, those with FutexAmbiguous or FutexOwnerUnsure
}
