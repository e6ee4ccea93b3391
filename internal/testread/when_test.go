package testread

import (
	"testing"

	"stackshot/kcdata"
)

// What the page's words on when an item is there forbid is seen.
func TestUnlikelyIsSeen(t *testing.T) {
	const idle = 1 << 32
	w := kcdata.NewWriter(make([]byte, 4<<10))
	for _, err := range []error{
		w.Begin(kcdata.MagicStackshot), w.BeginContainer(kcdata.TypeTask, 0), w.BeginContainer(kcdata.TypeThread, idle),
		w.Struct(kcdata.TypeLatencyInfoThread, kcdata.LatencyThread{}),
		w.Struct(kcdata.TypeLinuxThreadIO, kcdata.LinuxThreadIO{}),
		w.Struct(kcdata.TypeLinuxDelays, kcdata.LinuxDelays{}),
		w.Uint64s(kcdata.TypeUserStackLR64, []uint64{1}),
		w.EndContainer(idle), w.EndContainer(0), w.End(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := kcdata.ParseSnapshot(w.Written())
	if err != nil {
		t.Fatal(err)
	}
	s.Engine, s.Machine.Redacted = "procfs", 1
	// And there is no TASK_SNAPSHOT, and no LINUX_USER_HOW.
	if out := unlikely(w.Written(), s); len(out) != 5 {
		t.Errorf("%q", out)
	}
}
