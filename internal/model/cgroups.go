package model

import "stackshot/kcdata"

// CgroupsNotDone are the names of kcdata.LinuxCgroupsTaken.Flags.
var CgroupsNotDone = Flags{
	{kcdata.CgroupsNoMemory, "not_mounted"}, {kcdata.CgroupsNoPressure, "no_pressure"}, {kcdata.CgroupsTimeUp, "time_up"}, {kcdata.CgroupsHung, "hung"},
}

// CgroupFlags are the names of kcdata.LinuxCgroup.Flags.
var CgroupFlags = Flags{
	{kcdata.CgroupUnderOOM, "under_oom"}, {kcdata.CgroupNoOOMKill, "no_oom_kill"}, {kcdata.CgroupAbove, "above"},
}

var cgroupOutcomes = [...]string{
	kcdata.CgroupRead: "read", kcdata.CgroupGone: "gone", kcdata.CgroupDenied: "denied", kcdata.CgroupLate: "late",
	kcdata.CgroupHidden: "hidden", kcdata.CgroupFailed: "failed",
}

// CgroupOutcome is the name of kcdata.LinuxCgroup.Outcome.
func CgroupOutcome(o uint16) string {
	if int(o) < len(cgroupOutcomes) {
		return cgroupOutcomes[o]
	}
	return "unknown"
}
