package kcdata

// What began a capture that the machine's own kernel took, with nobody's help (stackshot arm).
// Structs and ids follow the rules of linux.go.
const TypeLinuxPanic Type = 0x4C24 // LinuxPanic, top level before the tasks; absent unless a panic or a SysRq began the capture

// What began it, in LinuxPanic.
const (
	PanicBySysrq = 1 // the key
	PanicByPanic = 2 // panic()
	PanicByCrash = 3 // an oops that went to the crash kernel without panic()
)

// Outcomes in LinuxPanic.
const (
	PanicInProgress = 0 // it did not end: the machine died meanwhile, or was dumped
	PanicWhole      = 1 // all threads that the kernel's list had
	PanicNoRoom     = 2 // the memory for it was full
	PanicOutOfTime  = 3 // its time was up
)

// Bits of LinuxPanic.Flags.
const (
	PanicPreemptOff = 1 << 0 // preemption was off on its CPU
	PanicIRQOff     = 1 << 1 // and interrupts
	PanicByKey      = 1 << 2 // the SysRq came by keyboard or serial line, not by /proc/sysrq-trigger
	PanicStackCut   = 1 << 3 // the hook's own frames are cut off the stack of the thread that it ran in
	PanicTorn       = 1 << 4 // these words themselves are damaged in the dump: they may be wrong
	PanicFromDump   = 1 << 5 // read out of a dump of memory; else by the machine itself
)

// LinuxPanic says how a capture went that one CPU took alone while the others ran on. Times in ns.
type LinuxPanic struct {
	Cause       uint32    `kc:"cause"`   // PanicBy*
	Outcome     uint32    `kc:"outcome"` // Panic outcomes
	Flags       uint32    `kc:"flags"`   // Panic bits
	Key         uint32    `kc:"key"`     // of the SysRq, an ASCII letter
	CPU         uint32    `kc:"cpu"`     // where it ran
	Tid         uint32    `kc:"tid"`     // thread that panicked, or that handled the SysRq
	Tgid        uint32    `kc:"tgid"`
	Tasks       uint32    `kc:"tasks"` // recorded, as the walk counted
	Threads     uint32    `kc:"threads"`
	Idle        uint32    `kc:"idle"`         // of the threads, idle ones
	Live        uint32    `kc:"live"`         // captures that were told to let go of the machine
	PagesAbsent uint32    `kc:"pages_absent"` // of the records, of 4096 bytes, that the dump does not have: read as zeros, which a dump level leaves out
	PagesLost   uint32    `kc:"pages_lost"`   // of the records, that should be in the dump and cannot be read: tasks that lie there are left out
	Reserved    uint32    `kc:"reserved"`
	BeganNs     uint64    `kc:"began_ns"` // CLOCK_MONOTONIC
	EndedNs     uint64    `kc:"ended_ns"` // 0: it did not end
	Bytes       uint64    `kc:"bytes"`    // recorded
	Room        uint64    `kc:"room"`     // bytes for them
	Nested      uint64    `kc:"nested"`   // later panics and SysRqs that found the memory taken
	Lost        uint64    `kc:"lost"`     // SysRqs whose records this panic took the place of, before anybody had saved them
	Region      uint64    `kc:"region"`   // which memory: CLOCK_BOOTTIME ns when it was made
	Generation  uint64    `kc:"generation"`
	Comm        [16]byte  `kc:"comm"`    // name of the thread
	Hook        [32]byte  `kc:"hook"`    // function of the kernel that was hooked
	Message     [256]byte `kc:"message"` // of panic()
}
