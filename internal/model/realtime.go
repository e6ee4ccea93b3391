package model

import (
	"fmt"

	"stackshot/kcdata"
)

// Real-time scheduling policies (include/uapi/linux/sched.h).
const (
	policyFIFO     = 1
	policyRR       = 2
	policyDeadline = 6
)

// RealTime is the real-time policy and priority of a thread, "FIFO 99"; "" if it has none, or if
// that is not known.
func RealTime(t *kcdata.Thread) string {
	if !t.HasLinux {
		return ""
	}
	return RealTimeOf(t.Linux.Policy, t.Linux.RtPriority)
}

// RealTimeOf is RealTime by policy and priority.
func RealTimeOf(policy, priority uint32) string {
	switch policy {
	case policyFIFO:
		return fmt.Sprintf("FIFO %d", priority)
	case policyRR:
		return fmt.Sprintf("RR %d", priority)
	case policyDeadline:
		return "DEADLINE"
	}
	return ""
}

// Rank orders real-time threads by who runs first, by policy and priority; 0 is any other.
func Rank(policy, priority uint32) int {
	switch policy {
	case policyFIFO, policyRR:
		return int(priority)
	case policyDeadline:
		return 100
	}
	return 0
}
