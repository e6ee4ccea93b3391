package kcdata

// Apple's types that code here reads or writes, each with its payload: of crash
// information (0x800-0x8ff) and of stackshots (0x901-0x957). All others stand in the spec
// table alone (spec_apple_*.go).
const (
	TypeCrashProcPath         Type = 0x80f // string
	TypeCrashCrashedThreadID  Type = 0x81a // u64
	TypeTask                  Type = 0x903 // container, id: task
	TypeThread                Type = 0x904 // container, id: thread
	TypeTaskSnapshot          Type = 0x905 // TaskSnapshot
	TypeThreadSnapshot        Type = 0x906 // ThreadSnapshot
	TypeDonatingPids          Type = 0x907 // array of s32
	TypeSharedCacheLoadinfo   Type = 0x908
	TypeThreadName            Type = 0x909 // string, always 64 bytes
	TypeKernStackFrame        Type = 0x90a // array of a return address and a stack pointer, u32, leaf first
	TypeKernStackFrame64      Type = 0x90b // the same of u64
	TypeUserStackFrame        Type = 0x90c // as 0x90a
	TypeUserStackFrame64      Type = 0x90d // as 0x90b
	TypeBootArgs              Type = 0x90e // string
	TypeOSVersion             Type = 0x90f // string
	TypeKernPageSize          Type = 0x910 // u32
	TypeKernStackLR           Type = 0x913 // array of u32, leaf first
	TypeKernStackLR64         Type = 0x914 // array of u64, leaf first
	TypeUserStackLR           Type = 0x915 // array of u32, leaf first
	TypeUserStackLR64         Type = 0x916 // array of u64, leaf first
	TypeCPUTimes              Type = 0x919 // CPUTimes
	TypeDuration              Type = 0x91a // Duration
	TypeThreadWaitinfo        Type = 0x91d // array of ThreadWaitinfo
	TypeASID                  Type = 0x925 // u32
	TypePageTables            Type = 0x926 // array of u64
	TypeLatencyInfo           Type = 0x92b // LatencyCollection
	TypeLatencyInfoTask       Type = 0x92c // LatencyTask
	TypeLatencyInfoThread     Type = 0x92d // LatencyThread
	TypeTransitioningSnapshot Type = 0x930 // TransitioningTaskSnapshot
	TypeTransitioningTask     Type = 0x931 // container, id: task past its exit point
	TypeThreadDeltaSnapshot   Type = 0x941
	TypeNonrunnableTids       Type = 0x917 // array of i64: threads of a delta that cannot run
	TypeExclaves              Type = 0x949 // container, id: 0
	TypeLatencyInfoCPU        Type = 0x956 // array of LatencyCPU
)
