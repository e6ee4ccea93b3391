package waits

import (
	"maps"
	"slices"

	"stackshot/internal/model"
)

// Kinds are all kinds, by name.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds)) }

// IsKernelLock reports whether k is a lock of the kernel.
func (k Kind) IsKernelLock() bool {
	switch k {
	case Mutex, Semaphore, RWSem, RWSemRead, RWSemWrite, RTMutex, PercpuSem, FilePosition:
		return true
	}
	return false
}

// IsLock reports whether k is a lock, of the kernel, of a program or of a file: others give it up soon.
func (k Kind) IsLock() bool {
	switch k {
	case UserMutex, UserRWLock, UserPIMutex, UserOnce, StaticGuard, RustLock, FileLock:
		return true
	}
	return k.IsKernelLock() || k.IsQueued()
}

// IsQueued reports whether k is a lock for which each thread sleeps at a word of its own, so that which lock it is
// is not known. All of a process count as one Resource, without an ID.
func (k Kind) IsQueued() bool { return k == JavaMonitor || k == ParkingLot }

// IsOnce reports whether k is of an initialization that runs once.
func (k Kind) IsOnce() bool { return k == UserOnce || k == StaticGuard }

// RestsInD reports whether threads wait in D for k for long where nothing is wrong: for work, for a
// vfork child, for a time.
func (k Kind) RestsInD() bool { return k == AtRest || k == Vfork || k == Timer }

// Rests reports whether threads stand in w for hours where nothing is wrong: they wait for work, for
// an event, for a child or a thread, or for a time.
func (w *Wait) Rests() bool {
	switch {
	case w.Timed || w.File != nil && w.File.Says == Serves:
		return true
	case w.State.Class == model.Blocked:
		return w.Kind.RestsInD()
	case w.Kind == Pipe:
		return w.File == nil || w.File.File == nil || !toWrite(w.File.File)
	case w.Kind == Socket: // of which it is not known who is to answer
		return w.File == nil || len(w.Owners) == 0 && w.File.Says != Elsewhere
	}
	return slices.Contains(restful, w.Kind)
}

var restful = []Kind{AtRest, Timer, Signal, ChildEnd, Poll, Terminal, Descriptor, Netlink, IOUring, IPC, VirtualCPU,
	UserCondvar, UserSemaphore, UserPark, UserJoin, UserBarrier, JavaNotify, GoRuntime, Futex}

// Known reports whether k is one of Kinds.
func (k Kind) Known() bool {
	_, ok := kinds[k]
	return ok
}

// kinds has every kind, with its words; "waits for" goes before them.
var kinds = map[Kind]string{
	Mutex:      "a mutex of the kernel",
	Semaphore:  "a semaphore of the kernel",
	RWSem:      "an rwsem of the kernel",
	RWSemRead:  "an rwsem of the kernel, to read",
	RWSemWrite: "an rwsem of the kernel, to write",
	RTMutex:    "an rt_mutex of the kernel",
	PercpuSem:  "a per-CPU rwsem of the kernel",

	FilePosition: "the position of an open file",

	UserMutex:     "a mutex",
	UserRWLock:    "a read-write lock",
	UserPIMutex:   "a priority-inheritance mutex",
	UserJoin:      "the end of a thread",
	UserCondvar:   "a condition variable",
	UserSemaphore: "a semaphore",
	UserBarrier:   "a barrier",
	GoRuntime:     "work, in the Go runtime",
	UserOnce:      "a once control",
	StaticGuard:   "a guard of a C++ static",
	RustLock:      "a lock of Rust's standard library",
	ParkingLot:    "a lock of Rust's parking_lot",
	JavaMonitor:   "a Java monitor",
	JavaNotify:    "another Java thread to notify it",
	UserPark:      "another thread to unpark it",
	Futex:         "a futex",

	ChildEnd:  "a child to end or stop",
	Threads:   "its other threads to end",
	Workers:   "its io_uring workers to end",
	CoreDump:  "the core dump of its process",
	Namespace: "the processes of its pid namespace to end",
	Vfork:     "its vfork child to execute a program or end",
	Stopped:   "a signal to go on (it is stopped)",
	Traced:    "its tracer",
	Frozen:    "its freezer to thaw it",
	CPU:       "a CPU",

	Timer:      "a timer",
	Signal:     "a signal",
	PageFault:  "a page that it touched",
	Userfault:  "a page that a userfaultfd has to serve",
	PageLock:   "a locked page",
	Writeback:  "pages to be written to their disk",
	BlockIO:    "a block device",
	FileSystem: "its file system",
	FSFreeze:   "a frozen file system to be thawed",
	NFS:        "an NFS server",
	FUSE:       "a FUSE server",
	Memory:     "free memory",
	RCU:        "an RCU grace period",
	Netlink:    "a netlink message",
	IOUring:    "an io_uring completion",
	Poll:       "one of several descriptors",
	Pipe:       "the other end of a pipe",
	Socket:     "the other end of a socket",
	Terminal:   "a terminal",
	FileLock:   "a file lock",
	Descriptor: "an event of a descriptor",
	IPC:        "a message or semaphore (IPC)",
	VirtualCPU: "its guest",
	Completion: "something that the kernel does",
	Workqueue:  "work of a kernel worker to be done",
	AtRest:     "work (at rest)",
	Other:      "something that its stack does not tell",
}

// Words are k for people, after "waits for".
func (k Kind) Words() string {
	if words, ok := kinds[k]; ok {
		return words
	}
	return kinds[Other]
}
