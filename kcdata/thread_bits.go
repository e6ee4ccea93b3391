package kcdata

// Bits of LinuxThread.State, the kernel's __state (include/linux/sched.h). Those
// below StateFrozen have not moved since 4.14; the freezer's came with commit
// f5d39b020809 ("freezer,sched: Rewrite core freezer logic") in 6.1.
const (
	StateInterruptible   = 0x1
	StateUninterruptible = 0x2
	StateStopped         = 0x4
	StateTraced          = 0x8
	StateParked          = 0x40
	StateDead            = 0x80
	StateWakekill        = 0x100
	StateWaking          = 0x200
	StateNoload          = 0x400
	StateNew             = 0x800
	StateRtlockWait      = 0x1000
	StateFrozen          = 0x8000
)

// Values of LinuxThread.ExitState (include/linux/sched.h).
const (
	ExitDead   = 0x10
	ExitZombie = 0x20
)

// Bits of LinuxThread.Flags, the kernel's PF_* (include/linux/sched.h).
const (
	PFExiting    = 0x4
	PFForkNoExec = 0x40 // its process was forked, and has executed no program since
	PFKthread    = 0x200000
)

// Bits of ThreadSnapshot.State, XNU's TH_* (osfmk/kern/thread.h).
const (
	THWait      = 0x1  // waits
	THSusp      = 0x2  // stopped or traced
	THRun       = 0x4  // runnable
	THUnint     = 0x8  // uninterruptible
	THTerminate = 0x10 // exited
)

// Bits of the ss_flags of the snapshots of tasks (the first two) and of threads
// (kcdata.h of XNU).
const (
	SSUser64          = 0x1    // has user space
	SSKernel64        = 0x2    // always
	SSTruncated       = 0x80   // a stack goes on where it ends in the file: SSTruncatedKernel or SSTruncatedUser
	SSOnCore          = 0x800  // was on its CPU
	SSMain            = 0x2000 // thread group leader
	SSTruncatedKernel = 0x4000
	SSTruncatedUser   = 0x8000
)
