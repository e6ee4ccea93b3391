package model

import (
	"testing"

	"stackshot/kcdata"
)

// Every way to find a frame, and every flag, has its name.
func TestUserWordsAreComplete(t *testing.T) {
	for how := byte(kcdata.UserFrameRegs); how <= kcdata.UserFrameCode; how++ {
		if FoundBy[how] == "" {
			t.Errorf("way %d has no name", how)
		}
	}
	named := uint32(0)
	for _, f := range UserWalkFlags {
		named |= f.bit
	}
	if named != 1<<22-1 {
		t.Errorf("flags %#x are named", named)
	}
}
