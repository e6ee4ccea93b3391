//go:build linux

package snapshot

import (
	"slices"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// Engine procfs has of each thread no register but two, and stops nothing. As far as its
// stacks go they are gdb's, and those of C programs go all the way.
func TestUserProofProcfs(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	testneed.Root(t)
	lab := userlab.Start(t, testneed.Length([]string{"c", "c-fp", "c++"}, userlab.Few())...)
	var pids []int
	for _, p := range lab.Processes {
		p.Stop()
		pids = append(pids, p.Members...)
	}
	file := prove(t, Options{Engine: EngineProcfs}, pids)
	for _, p := range lab.Processes {
		witness, err := p.Witness()
		if err != nil {
			t.Error(err)
			continue
		}
		whole := 0
		for _, w := range witness {
			if sameSoFar(t, file, p.Name, w) {
				whole++
			}
		}
		t.Logf("%s: %d of %d stacks whole", p.Name, whole, len(witness))
		if p.Name == "c" && whole < len(witness) {
			t.Errorf("c: %d of %d stacks are whole", whole, len(witness))
		}
	}
}

// sameSoFar reports whether a stack is whole. What it has must be what gdb has.
func sameSoFar(t *testing.T, file *proof, process string, w userlab.Thread) bool {
	t.Helper()
	task, th := file.thread(t, w.Tid)
	if th.UserWalk == nil || th.UserWalk.Flags&kcdata.UserFewRegisters == 0 {
		t.Errorf("%s tid %d: walk %+v", process, w.Tid, th.UserWalk)
		return false
	}
	got, want := physical(frames(task, th)), physical(w.Frames)
	want = want[:min(w.Trusted, len(want))]
	if th.UserWalk.Flags&kcdata.UserCompat != 0 && len(got) == 0 {
		return false // 32-bit frames have another layout
	}
	if len(got) == 0 {
		t.Errorf("%s tid %d: no stack: flags %#x", process, w.Tid, th.UserWalk.Flags)
		return false
	}
	unsure := th.UserWalk.Flags&(kcdata.UserCallersUnsure|kcdata.UserTablesMissed) != 0
	same := func(a, b userlab.Frame) bool { return a.PC == b.PC }
	if n := min(len(got), len(want)); !unsure && !slices.EqualFunc(got[:n], want[:n], same) {
		t.Errorf("%s tid %d:\nours %v\ngdb %v", process, w.Tid, got, want)
	}
	return th.UserWalk.Flags&kcdata.UserComplete != 0
}
