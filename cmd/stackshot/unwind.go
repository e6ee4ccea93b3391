package main

import (
	"os"
	"time"

	"stackshot/internal/foreign"
	"stackshot/internal/image"
	"stackshot/internal/stacks"
	"stackshot/kcdata"
)

// Limits of unwinding a file again.
const (
	redoLimit  = 30 * time.Second // for reading unwind tables, whatever hangs
	redoFrames = 1000             // of a stack that was not cut
)

// redo makes the user stacks of a file anew from what was kept of them.
func (z *symbolizing) redo(plain []byte, s *kcdata.Snapshot) ([]byte, *kcdata.Snapshot, error) {
	files := foreign.New(foreign.Options{Remote: z.remote, Command: fileReader})
	defer files.Close()
	u := stacks.Unwinder{Images: image.New(files, 0), Arch: s.Arch, Left: redoLimit, Frames: redoFrames}
	out, sum, err := u.Redo(plain, s, isLocal(s))
	if err != nil {
		return nil, nil, err
	}
	say(os.Stderr, "unwound %d threads again, %d of them have other frames now", sum.Threads, sum.Changed)
	if sum.Short > 0 {
		say(os.Stderr, "callers may still be missing in %d of them: unwind tables were not read", sum.Short)
	}
	again, err := kcdata.ParseSnapshot(out)
	return out, again, err
}
