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
	switch t.Linux.Policy {
	case policyFIFO:
		return fmt.Sprintf("FIFO %d", t.Linux.RtPriority)
	case policyRR:
		return fmt.Sprintf("RR %d", t.Linux.RtPriority)
	case policyDeadline:
		return "DEADLINE"
	}
	return ""
}
