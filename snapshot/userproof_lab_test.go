//go:build linux

package snapshot

import (
	"slices"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// What the mixed lab must reach: of stacks that gdb has whole, and of single
// frames, percent; and the stacks of each process by itself.
const (
	leastStacks = 98
	leastFrames = 99
)

// leastOf is the same for one process: stacks, percent.
func leastOf(process string) float64 {
	if process == "c-signals" {
		return 57 // four of seven: three stand on a signal stack, and their callers' is not copied: marked
	}
	return 90
}

// One capture of a lab of real programs agrees with gdb, frame by frame and
// function by function, wherever gdb knows; where it does not, with what the
// programs were written to do.
func TestUserProofLab(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	requireBPF(t)
	lab := userlab.Start(t, userlab.Few()...)
	var pids []int
	// Of a 32-bit process there are no stacks, by design (TestUserStackOfA32BitProcess).
	lab.Processes = slices.DeleteFunc(lab.Processes, func(p *userlab.Process) bool { return p.Name == "elf32" })
	for _, p := range lab.Processes {
		p.Stop()
		pids = append(pids, p.Members...)
	}
	files := map[string]*proof{}
	for _, engine := range userEngines() {
		files[engine] = prove(t, Options{Engine: engine}, pids)
	}
	short := prove(t, Options{Engine: EngineProcfs}, pids)
	verdicts := map[string][]userlab.Verdict{}
	for _, p := range lab.Processes {
		witness, err := p.Witness()
		if err != nil {
			t.Error(err)
			continue
		}
		if whole := short.sameSoFar(t, p.Name, witness); p.Name == "c" && whole < len(witness) {
			t.Errorf("procfs: %d of %d stacks of c are whole", whole, len(witness))
		}
		for engine, file := range files {
			ours := file.stacks(p.Members)
			v := userlab.Judge(p.Name, witness, ours)
			v.Apart = p.Apart
			verdicts[engine] = append(verdicts[engine], v)
			wanted(t, engine, p, ours)
		}
	}
	for engine, all := range verdicts {
		for _, v := range all {
			t.Logf("%s, %s: %d of %d stacks valid, %d of %d frames; gdb is unsure: %v; %v", engine, v.Process, v.Valid, v.Stacks, v.Agree, v.Frames, v.Unsure, v.Failures[:min(5, len(v.Failures))])
		}
		sum := userlab.Total(all)
		if sum.StackPercent() < leastStacks || sum.FramePercent() < leastFrames || sum.Stacks < testneed.Length(40, 200) {
			t.Errorf("%s: %.2f %% of %d stacks valid, %.2f %% of %d frames", engine, sum.StackPercent(), sum.Stacks, sum.FramePercent(), sum.Frames)
		}
		for _, v := range all {
			if !v.Apart && v.Stacks > 0 && v.StackPercent() < leastOf(v.Process) {
				t.Errorf("%s, %s: %d of %d stacks valid", engine, v.Process, v.Valid, v.Stacks)
			}
		}
	}
}

// wanted holds a process against its source.
func wanted(t *testing.T, engine string, p *userlab.Process, ours []userlab.Stack) {
	t.Helper()
	for _, want := range p.Want {
		if p.Apart {
			continue
		}
		if !slices.ContainsFunc(ours, func(s userlab.Stack) bool { return userlab.InOrder(s.Frames, want) }) {
			t.Errorf("%s, %s: no stack has %q", engine, p.Name, want)
			for _, s := range ours {
				t.Logf("%s: %.20v (%s)", p.Name, s.Frames, s.Note)
			}
		}
	}
}

// sameSoFar counts whole stacks of a file of engine procfs, which has few registers and no bytes of
// stacks. What a stack has must be what gdb has.
func (p *proof) sameSoFar(t *testing.T, process string, witness []userlab.Thread) (whole int) {
	t.Helper()
	for _, w := range witness {
		task, th := p.thread(t, w.Tid)
		if th.UserWalk == nil || th.UserWalk.Flags&kcdata.UserFewRegisters == 0 {
			t.Errorf("procfs, %s tid %d: walk %+v", process, w.Tid, th.UserWalk)
			continue
		}
		got, want := physical(frames(task, th)), physical(w.Frames)
		want = want[:min(w.Trusted, len(want))]
		unsure := th.UserWalk.Flags&(kcdata.UserCallersUnsure|kcdata.UserTablesMissed) != 0
		same := func(a, b userlab.Frame) bool { return a.PC == b.PC }
		if n := min(len(got), len(want)); len(got) == 0 || !unsure && !slices.EqualFunc(got[:n], want[:n], same) {
			t.Errorf("procfs, %s tid %d:\nours %v\ngdb %v (%s)", process, w.Tid, got, want, note(th))
		}
		whole += min(1, int(th.UserWalk.Flags&kcdata.UserComplete))
	}
	return whole
}
