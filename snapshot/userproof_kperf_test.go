//go:build linux

package snapshot

import (
	"slices"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// A thread that recursed to a known depth has exactly these functions in the
// file, however it was compiled, asleep in a system call or running: the leaf's
// caller included, whole where it is not deeper than was asked for, and cut there
// and marked so where it is.
func TestUserProofKperf(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	requireBPF(t)
	var all []*userlab.KperfProcess
	var pids []int
	for _, frames := range []userlab.Frames{userlab.FramePointers, userlab.NoFramePointers, userlab.MixedFrames} {
		for _, spin := range []bool{false, true} {
			for _, depth := range testneed.Length([]int{12, 1000}, []int{12, 300, 1000}) {
				p := userlab.StartKperf(t, userlab.Kperf{Frames: frames, Depth: depth, Spin: spin})
				all, pids = append(all, p), append(pids, p.Pid)
			}
		}
	}
	for _, engine := range userEngines() {
		t.Run(engine, func(t *testing.T) {
			kperfRight(t, prove(t, Options{Engine: engine}, pids), all, defaultUserFrames)
			kperfRight(t, prove(t, Options{Engine: engine, UserFrames: 1000, StackBytes: 64 << 10}, pids), all, 1000)
		})
	}
}

func kperfRight(t *testing.T, p *proof, all []*userlab.KperfProcess, limit int) {
	t.Helper()
	for _, k := range all {
		task, th := p.thread(t, k.Tid)
		got := physical(frames(task, th))
		if p.short(k, limit) {
			cutByBytes(t, k, th, got)
			continue
		}
		if err := k.Check(got, limit); err != nil {
			t.Errorf("limit %d: %v (%s)", limit, err, note(th))
		}
		w, deeper := th.UserWalk, k.Depth >= limit
		if w == nil {
			continue // Check has said so
		}
		if cut := w.Flags&kcdata.UserTruncated != 0; cut != deeper || w.Flags&kcdata.UserUnwound == 0 {
			t.Errorf("%v, limit %d: flags %#x (%s)", k, limit, w.Flags, note(th))
		}
		if deeper && (len(got) != limit || w.Frames != uint32(limit)) {
			t.Errorf("%v: %d frames, the record says %d, want %d", k, len(got), w.Frames, limit)
		}
		if complete := w.Flags&kcdata.UserComplete != 0; complete == deeper {
			t.Errorf("%v, limit %d: complete %v (%s)", k, limit, complete, note(th))
		}
		if exact := w.Flags&kcdata.UserExact != 0; exact != k.Spin {
			t.Errorf("%v: exact %v", k, exact)
		}
	}
}

func physical(frames []userlab.Frame) []userlab.Frame {
	return slices.DeleteFunc(frames, func(f userlab.Frame) bool { return f.Inline })
}

// short says of which stacks engine pull cannot take enough: 1,000 frames without
// frame pointers are more than the kernel's buffer of 32 KiB. The file says so.
func (p *proof) short(k *userlab.KperfProcess, limit int) bool {
	return slices.ContainsFunc(p.Warnings, func(w kcdata.Warning) bool { return w.Code == "user_stack_bytes" }) &&
		k.Depth >= 1000 && limit >= 1000 && k.Frames != userlab.FramePointers
}

// cutByBytes: a stack of which not enough was copied has right frames, as many as
// there are bytes for, and the mark.
func cutByBytes(t *testing.T, k *userlab.KperfProcess, th *kcdata.Thread, got []userlab.Frame) {
	t.Helper()
	if err := k.Check(got, len(got)); err != nil || len(got) < 350 {
		t.Errorf("%v: %d frames: %v", k, len(got), err)
	}
	if f := th.UserWalk.Flags; f&kcdata.UserNoMoreBytes == 0 || f&kcdata.UserComplete != 0 {
		t.Errorf("%v: flags %#x (%s)", k, f, note(th))
	}
}

// In execve before the point of no return the stack is the old program's; past it
// the registers are of a program that is gone: no frame of it may be claimed.
func TestUserProofExec(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	slow, late := userlab.SlowExec(t), userlab.LateExec(t)
	forEngines(t, func(t *testing.T, engine string) {
		p := prove(t, Options{Engine: engine, ReadLimit: 100 * time.Millisecond}, []int{slow.Pid, late.Pid})
		task, th := p.thread(t, slow.Pid)
		if got := frames(task, th); !userlab.InOrder(got, slow.Stack) {
			t.Errorf("before: %v (%s)", got, note(th))
		}
		task, th = p.thread(t, late.Pid)
		got := frames(task, th)
		if len(got) > 1 || th.UserWalk != nil && th.UserWalk.Flags&kcdata.UserComplete != 0 {
			t.Errorf("past the point of no return: %v (%s)", got, note(th))
		}
		for _, f := range got {
			if f.Func != "" {
				t.Errorf("past the point of no return: a function %q", f.Func)
			}
		}
	})
}
