//go:build linux

package snapshot

import (
	"testing"

	"stackshot/internal/stacks"
	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// Who reads a file by Apple's flags alone learns that a stack goes on where it
// ends: of a capture, and of a file that was unwound again with less.
func TestTruncatedStacksInApplesFlags(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	deep := userlab.StartKperf(t, userlab.Kperf{Frames: userlab.FramePointers, Depth: 300}) // 256 are asked for
	lab := userlab.Start(t, "c")
	pids := append([]int{deep.Pid}, lab.Processes[0].Members...)
	for _, engine := range userEngines() {
		_, snap, file := takeWhole(t, Options{Engine: engine, KeepStacks: true}, Request{Pids: pids})
		cut, whole := truncated(t, engine, snap)
		if len(cut) == 0 || len(whole) == 0 {
			t.Errorf("%s: %d user stacks are truncated, %d whole", engine, len(cut), len(whole))
		}
		u := stacks.Unwinder{Arch: snap.Arch, Frames: 1}
		again, _, err := u.Redo(file, snap, false)
		if err != nil {
			t.Fatal(err)
		}
		poor, err := parse(t, again)
		if err != nil {
			t.Fatal(err)
		}
		if more, _ := truncated(t, engine+", one frame", poor); len(more) <= len(cut) {
			t.Errorf("%s: of one frame %d are truncated, of 256 %d", engine, len(more), len(cut))
		}
	}
}

// truncated holds the flags of each thread against what the file says beside them.
func truncated(t *testing.T, what string, snap *kcdata.Snapshot) (cut, whole []uint64) {
	t.Helper()
	for id, th := range threadsByID(snap) {
		flags := th.Snapshot.SSFlags
		if w := th.UserWalk; w != nil && len(th.User) > 0 {
			complete := w.Flags&kcdata.UserComplete != 0
			if (flags&0x8000 != 0) == complete {
				t.Errorf("%s: thread %d has flags %#x, its walk %#x", what, id, flags, w.Flags)
			}
			if complete {
				whole = append(whole, id)
			} else {
				cut = append(cut, id)
			}
		} else if flags&0x8000 != 0 {
			t.Errorf("%s: thread %d without a user stack has flags %#x", what, id, flags)
		}
		if kernel := th.Linux.Present&kcdata.ThreadTruncated != 0; kernel != (flags&0x4000 != 0) || (flags&0x80 != 0) != (flags&0xc000 != 0) {
			t.Errorf("%s: thread %d has flags %#x, kernel stack truncated %v", what, id, flags, kernel)
		}
	}
	return cut, whole
}
