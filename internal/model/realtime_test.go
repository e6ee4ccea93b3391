package model

import (
	"testing"

	"stackshot/kcdata"
)

func TestRealTime(t *testing.T) {
	for policy, want := range map[uint32]string{0: "", 1: "FIFO 99", 2: "RR 99", 3: "", 5: "", 6: "DEADLINE", 7: ""} {
		th := &kcdata.Thread{Linux: kcdata.LinuxThread{Policy: policy, RtPriority: 99}}
		if got := RealTime(th); got != "" {
			t.Errorf("policy %d that is not known: %q", policy, got)
		}
		th.HasLinux = true
		if got := RealTime(th); got != want {
			t.Errorf("policy %d: %q, want %q", policy, got, want)
		}
	}
}
