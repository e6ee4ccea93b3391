package kcdata

// The user side: what the window records of a thread's user stack, what unwinding makes of
// it after the release, and the records that name its addresses. Structs and ids follow the
// rules of linux.go.
const (
	TypeLinuxUserTaken   Type = 0x4C1A // LinuxUserTaken, top level after the tasks; absent if no user stack was taken
	TypeLinuxMapping     Type = 0x4C44 // array of LinuxMapping, in TASK: its executable mappings, ascending
	TypeLinuxMapStrings  Type = 0x4C45 // bytes, in TASK: NUL-separated string table of its LinuxMapping and LinuxUserSymbol; begins with a NUL
	TypeLinuxUserSymbol  Type = 0x4C46 // array of LinuxUserSymbol, in TASK, ascending by address; for one address and flags the innermost function first
	TypeLinuxPerfMap     Type = 0x4C47 // string, in TASK: path of its perf map, in its own mount namespace
	TypeLinuxMapName     Type = 0x4C4C // string, in TASK: path of the LinuxMapping before it, as far as the window could read it; if its beginning is missing, it begins with "…"
	TypeLinuxMapWalk     Type = 0x4C4D // LinuxMapWalk, in a TASK whose mappings the window recorded
	TypeLinuxCmdlineSeen Type = 0x4C4E // bytes, in TASK with a LinuxMapWalk: its command line, in the form of LINUX_CMDLINE, read from its memory during the stop; at most 4 KiB
	TypeLinuxUserWalk    Type = 0x4C89 // LinuxUserWalk, in a THREAD with user registers, or with UserFewRegisters
	TypeLinuxUserChain   Type = 0x4C8A // array of LinuxUserLink: the frame-pointer chain; unwinding removes it, except with --keep-stacks or UserKeptToMend
	TypeLinuxUserBytes   Type = 0x4C8B // bytes: pieces of the stack, ascending, each its address (u64), its length in bytes (u64) and the bytes; repeated; unwinding removes it, except with --keep-stacks or UserKeptToMend
	TypeLinuxUserHow     Type = 0x4C8C // bytes: for each address of USER_STACKLR64 a UserFrame*
)

// How a frame of a user stack was found.
const (
	UserFrameRegs    = 1 // the leaf: the saved program counter
	UserFrameFP      = 2 // the frame-pointer chain
	UserFrameCFI     = 3 // .eh_frame or .debug_frame
	UserFramePclntab = 4 // Go's own table
	UserFrameSignal  = 5 // the registers that a signal frame saved
	UserFrameLR      = 6 // a register: the link register of arm64, or where the code has put its return address
	UserFrameCode    = 7 // the instructions themselves, in code that no table covers: what they do to the stack pointer up to the return
)

// Bits of LinuxUserWalk.Flags.
const (
	UserWalked        = 1 << 0  // the frame-pointer chain was followed
	UserExact         = 1 << 1  // the thread was in user mode; otherwise its registers are those of its system call
	UserTruncated     = 1 << 2  // there are more frames than the request allows
	UserPagedOut      = 1 << 3  // a needed page is not in memory: it is swapped out, or belongs to a file
	UserRefused       = 1 << 4  // an address is not ordinary memory of this task: a device, PROT_NONE, a page without the user bit; or its page tables or mappings are not ordinary memory
	UserOutside       = 1 << 5  // the next frame pointer is outside of the stack, not above the last one, or not aligned
	UserCompat        = 1 << 6  // a 32-bit thread: no stack
	UserNoMemory      = 1 << 7  // its memory is gone: exiting
	UserComplete      = 1 << 8  // unwinding reached an outermost frame
	UserUnwound       = 1 << 9  // USER_STACKLR64 comes from unwinding, not from the chain alone
	UserNoLoadInfo    = 1 << 10 // its mappings could not be read, so the files of its addresses are unknown
	UserNoMoreBytes   = 1 << 11 // unwinding came to the end of the stack bytes
	UserNoUnwindTable = 1 << 12 // unwinding came to code without unwind information
	UserAltStack      = 1 << 13 // the stack pointer is in no mapping that looks like its stack
	UserCallersUnsure = 1 << 14 // unwinding used the frame pointer in code without unwind information, and nothing proves that it belongs to that function: callers may be missing, even if UserComplete is set; or code that jumps to another stack, such as longjmp, described the place that it jumps to
	UserNoMapping     = 1 << 15 // unwinding came to an address outside of all executable mappings
	UserNoPage        = 1 << 16 // a needed page does not exist: its memory was never written to, or is not mapped
	UserTablesMissed  = 1 << 17 // unwinding came to code of a MappingTableMissed: callers may be missing, wherever it ended
	UserKeptToMend    = 1 << 18 // chain and bytes are in the file only because tables were missed; a repair with those tables removes them
	UserFewRegisters  = 1 << 19 // of the registers, only stack pointer and program counter are known, from LINUX_SYSCALL: engine procfs
	UserNoRegister    = 1 << 20 // unwinding needed a register that is not known (UserFewRegisters)
	UserMoved         = 1 << 21 // the thread ran while its stack was read, so what was read was dropped: no stack
)

// LinuxUserWalk says how one thread's user stack was taken, and with what result. The
// counts are those of the window, unless a field says otherwise.
type LinuxUserWalk struct {
	Flags        uint32 `kc:"flags"`        // User*
	Links        uint32 `kc:"links"`        // of the frame-pointer chain
	Bytes        uint32 `kc:"bytes"`        // of stack that were copied
	Absent       uint32 `kc:"absent"`       // needed pages that were not present
	Refused      uint32 `kc:"refused"`      // refused translations, and refused pointers to its mappings
	Frames       uint32 `kc:"frames"`       // of USER_STACKLR64, after unwinding
	StackEnd     uint64 `kc:"stack_end"`    // end of the mapping that holds the stack pointer; 0: not known
	WalkNs       uint32 `kc:"walk_ns"`      // time for chain and bytes; 0: not measured
	Translations uint32 `kc:"translations"` // page-table walks; an address in the page of the last translation needs none
	StopAddr     uint64 `kc:"stop_addr"`    // where the chain or the unwinding ended, unless at an outermost frame
}

// LinuxUserTaken sums up the LinuxUserWalk of all threads. An absent page stays absent:
// reading user memory never faults a page in.
type LinuxUserTaken struct {
	Threads      uint64 `kc:"threads"`      // with a LinuxUserWalk
	Walked       uint64 `kc:"walked"`       // threads whose chain was followed
	PagedOut     uint64 `kc:"paged_out"`    // threads that needed a page that was not present
	Links        uint64 `kc:"links"`        // links of all chains
	Bytes        uint64 `kc:"bytes"`        // of stack that were copied
	Absent       uint64 `kc:"absent"`       // pages
	Refused      uint64 `kc:"refused"`      // translations
	Translations uint64 `kc:"translations"` // page-table walks
}

// LinuxUserLink is one link of a frame-pointer chain: the pair {caller's frame
// pointer, return address} lies at FP.
type LinuxUserLink struct {
	FP uint64 `kc:"fp"`
	PC uint64 `kc:"pc"` // the return address
}

// Bits of LinuxMapping.Flags.
const (
	MappingDeleted     = 1 << 0 // the file has no name any more
	MappingVDSO        = 1 << 1 // the kernel's own code for user mode
	MappingAnon        = 1 << 2 // no file: generated code, or a copy
	MappingInWindow    = 1 << 3 // read during the stop, from the kernel's own tree; of the path only the last components
	MappingSkipped     = 1 << 4 // the file was not opened; LINUX_ENRICH_FAILED says why
	MappingUnread      = 1 << 5 // with MappingInWindow: a pointer to the file or its path does not point to ordinary memory, so these fields are incomplete
	MappingTableMissed = 1 << 6 // a stack led there, and the file's unwind table, or its code, was not read; LINUX_ENRICH_FAILED says why
)

// LinuxMapping is one executable mapping of a task.
type LinuxMapping struct {
	Start      uint64   `kc:"start"`
	End        uint64   `kc:"end"`
	Offset     uint64   `kc:"offset"` // in the file, bytes
	Inode      uint64   `kc:"inode"`  // 0: no file
	DevMajor   uint32   `kc:"dev_major"`
	DevMinor   uint32   `kc:"dev_minor"`
	Path       uint32   `kc:"path"`  // offset in LINUX_MAP_STRINGS; 0: none
	Flags      uint32   `kc:"flags"` // Mapping*
	BuildIDLen uint32   `kc:"build_id_len"`
	BuildID    [20]byte `kc:"build_id"`
}

// Bits of LinuxMapWalk.Flags.
const (
	MapWalkWriter  = 1 << 0 // a thread held the process's mmap_lock for writing
	MapWalkWaiters = 1 << 1 // a thread waited for it
	MapWalkAsked   = 1 << 2 // the request asked for the mappings of every process
	MapWalkWhole   = 1 << 3 // the walk came to the end; otherwise the mappings behind its end are missing
)

// LinuxMapWalk says why the window recorded a task's executable mappings, and how many of
// them. To read /proc/PID/maps instead would have meant to wait for a lock.
type LinuxMapWalk struct {
	Flags    uint32 `kc:"flags"`   // MapWalk*
	Entries  uint32 `kc:"entries"` // mappings met, of any kind
	Leaves   uint32 `kc:"leaves"`  // of the tree
	Torn     uint32 `kc:"torn"`    // of entries, those that were just being changed and are unknown
	Found    uint32 `kc:"found"`   // of entries, the executable ones
	Written  uint32 `kc:"written"` // of these, the ones in the file; there was no room for the others
	WalkNs   uint64 `kc:"walk_ns"` // how long it took
	Refused  uint32 `kc:"refused"` // pointers that were not followed, because they do not point to ordinary memory
	Reserved uint32 `kc:"reserved"`
}

// Bits of LinuxUserSymbol.Flags. Records of the first version have neither: they name the
// address whatever it is.
const (
	UserSymbolExact  = 1 << 0 // the record names the instruction at addr: where a thread stood
	UserSymbolReturn = 1 << 1 // the record names the call before addr, which is a return address
)

// LinuxUserSymbol names one address that occurs in a user stack of its task. An address
// with several records lies in functions that are inlined into each other.
type LinuxUserSymbol struct {
	Addr     uint64 `kc:"addr"`   // as in USER_STACKLR64
	Offset   uint64 `kc:"offset"` // from the function's start
	Name     uint32 `kc:"name"`   // offset in LINUX_MAP_STRINGS, demangled
	Module   uint32 `kc:"module"` // offset in LINUX_MAP_STRINGS: path of the file, "[jit]", "[vdso]"
	File     uint32 `kc:"file"`   // offset in LINUX_MAP_STRINGS: source file; 0: not requested, or not known
	Line     uint32 `kc:"line"`   // 0: not known
	Flags    uint32 `kc:"flags"`  // UserSymbol*
	Reserved uint32 `kc:"reserved"`
}
