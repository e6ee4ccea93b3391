package kcdata

// Crash information, 0x800-0x8ff, and exit reasons, 0x1000-0x103f.
const (
	TypeCrashExtModInfo        Type = 0x801
	TypeCrashBSDInfo           Type = 0x802
	TypeCrashTaskDyldInfo      Type = 0x803
	TypeCrashUUID              Type = 0x804
	TypeCrashPid               Type = 0x805
	TypeCrashPPid              Type = 0x806
	TypeCrashRusage            Type = 0x807
	TypeCrashRusageInfo        Type = 0x808
	TypeCrashProcName          Type = 0x809
	TypeCrashProcStarttime     Type = 0x80b
	TypeCrashUserstack         Type = 0x80c
	TypeCrashArgslen           Type = 0x80d
	TypeCrashExceptionCodes    Type = 0x80e
	TypeCrashProcPath          Type = 0x80f
	TypeCrashProcCSFlags       Type = 0x810
	TypeCrashProcStatus        Type = 0x811
	TypeCrashUID               Type = 0x812
	TypeCrashGID               Type = 0x813
	TypeCrashProcArgc          Type = 0x814
	TypeCrashProcFlags         Type = 0x815
	TypeCrashCPUType           Type = 0x816
	TypeCrashWorkqueueInfo     Type = 0x817
	TypeCrashResponsiblePid    Type = 0x818
	TypeCrashDirtyFlags        Type = 0x819
	TypeCrashCrashedThreadID   Type = 0x81a
	TypeCrashCoalitionID       Type = 0x81b
	TypeCrashJITAddressRange   Type = 0x840
	TypeCrashCSAuxiliaryInfo   Type = 0x842
	TypeExitReasonSnapshot     Type = 0x1001
	TypeExitReasonUserDesc     Type = 0x1002
	TypeExitReasonUserPayload  Type = 0x1003
	TypeExitReasonCodesigning  Type = 0x1004
	TypeExitReasonWorkloopID   Type = 0x1005
	TypeExitReasonDispatchQNum Type = 0x1006
)
