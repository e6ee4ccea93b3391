package model

import "stackshot/kcdata"

// Flags are the stable names of a record's bits, in the order in which reports list them.
type Flags []struct {
	bit  uint32
	name string
}

// Names returns the names of the bits that are set; nil if none is.
func (f Flags) Names(bits uint32) (out []string) {
	for _, flag := range f {
		if bits&flag.bit != 0 {
			out = append(out, flag.name)
		}
	}
	return out
}

// UserWalkFlags are the names of kcdata.LinuxUserWalk.Flags.
var UserWalkFlags = Flags{
	{kcdata.UserWalked, "walked"}, {kcdata.UserExact, "exact"}, {kcdata.UserTruncated, "truncated"},
	{kcdata.UserPagedOut, "paged_out"}, {kcdata.UserRefused, "refused"}, {kcdata.UserOutside, "outside"},
	{kcdata.UserCompat, "compat"}, {kcdata.UserNoMemory, "no_memory"}, {kcdata.UserComplete, "complete"},
	{kcdata.UserUnwound, "unwound"}, {kcdata.UserNoLoadInfo, "no_load_info"}, {kcdata.UserNoMoreBytes, "no_more_bytes"},
	{kcdata.UserNoUnwindTable, "no_unwind_table"}, {kcdata.UserAltStack, "alt_stack"},
	{kcdata.UserCallersUnsure, "callers_unsure"}, {kcdata.UserNoMapping, "no_mapping"}, {kcdata.UserNoPage, "no_page"},
	{kcdata.UserTablesMissed, "tables_missed"}, {kcdata.UserKeptToMend, "kept_to_mend"},
	{kcdata.UserFewRegisters, "few_registers"}, {kcdata.UserNoRegister, "no_register"}, {kcdata.UserMoved, "moved"},
}

// MappingFlags are the names of kcdata.LinuxMapping.Flags.
var MappingFlags = Flags{
	{kcdata.MappingDeleted, "deleted"}, {kcdata.MappingVDSO, "vdso"}, {kcdata.MappingAnon, "anonymous"},
	{kcdata.MappingInWindow, "in_window"}, {kcdata.MappingSkipped, "skipped"}, {kcdata.MappingUnread, "unread"},
	{kcdata.MappingTableMissed, "table_missed"},
}

// FoundBy are the stable names of the ways to find a user frame (kcdata.UserFrame*).
var FoundBy = map[byte]string{
	kcdata.UserFrameRegs: "regs", kcdata.UserFrameFP: "fp", kcdata.UserFrameCFI: "cfi",
	kcdata.UserFramePclntab: "pclntab", kcdata.UserFrameSignal: "signal", kcdata.UserFrameLR: "lr",
	kcdata.UserFrameCode: "code",
}
