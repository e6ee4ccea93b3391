//go:build linux

package snapshot

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"stackshot/internal/foreign"
	"stackshot/internal/image"
	"stackshot/internal/stacks"
	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// What --keep-stacks leaves in a file is enough to unwind it again: the same
// frames come out, byte for byte the same file, also where no process is asked.
// Without it nothing of chain and bytes is in the file.
func TestUserProofRedo(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	requireBPF(t)
	lab := userlab.Start(t, "c", "c++", "rust", "python", "pipeline")
	fp := userlab.StartKperf(t, userlab.Kperf{Frames: userlab.FramePointers, Depth: 300})
	nofp := userlab.StartKperf(t, userlab.Kperf{Frames: userlab.NoFramePointers, Depth: 300})
	pids := []int{fp.Pid, nofp.Pid}
	for _, p := range lab.Processes {
		pids = append(pids, p.Members...)
	}
	for _, engine := range userEngines() {
		_, snap, file := takeWhole(t, Options{Engine: engine, ArrivalBudget: time.Second}, Request{Pids: pids})
		for id, th := range threadsByID(snap) {
			if len(th.UserBytes)+len(th.UserChain) > 0 {
				t.Errorf("%s: thread %d: chain or bytes stayed", engine, id)
			}
		}
		if _, _, err := redo(file, snap, true); !errors.Is(err, stacks.ErrNotKept) {
			t.Errorf("%s: nothing was kept: %v", engine, err)
		}
		_, snap, file = takeWhole(t, Options{Engine: engine, ArrivalBudget: time.Second, KeepStacks: true}, Request{Pids: pids})
		for _, local := range []bool{true, false} {
			out, sum, err := redo(file, snap, local)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, local %v: %+v", engine, local, sum)
			if sum.Threads < 30 || sum.Changed > 0 || !bytes.Equal(out, file) {
				t.Errorf("%s, local %v: %+v, %d bytes of %d", engine, local, sum, len(out), len(file))
			}
		}
		forget(t, engine, file, snap)
	}
}

func redo(file []byte, snap *kcdata.Snapshot, local bool) ([]byte, stacks.Tally, error) {
	files := foreign.New(foreign.Options{})
	defer files.Close()
	u := stacks.Unwinder{Images: image.New(files, 0), Arch: snap.Arch, Left: slow(time.Minute), Frames: defaultUserFrames}
	return u.Redo(file, snap, local)
}

// forget: where no tables may be read the stacks become others, and come back.
func forget(t *testing.T, engine string, file []byte, snap *kcdata.Snapshot) {
	t.Helper()
	u := stacks.Unwinder{Arch: snap.Arch, Frames: defaultUserFrames}
	poor, sum, err := u.Redo(file, snap, false)
	if err != nil || sum.Changed == 0 || bytes.Equal(poor, file) {
		t.Fatalf("%s, without tables: %+v, %v", engine, sum, err)
	}
	parsed, err := parse(t, poor)
	if err != nil {
		t.Fatal(err)
	}
	back, sum, err := redo(poor, parsed, true)
	if err != nil || sum.Changed == 0 || !bytes.Equal(back, file) {
		t.Errorf("%s: with tables again %+v, %v; equal %v", engine, sum, err, bytes.Equal(back, file))
	}
}
