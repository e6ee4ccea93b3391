//go:build linux

package snapshot

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

func eachProof(t *testing.T, f func(t *testing.T, engine string)) {
	requireBPF(t)
	for _, engine := range userEngines() {
		t.Run(engine, func(t *testing.T) { f(t, engine) })
	}
}

// A stack that is paged out is marked so, and is still out afterwards.
func TestUserProofPagedStack(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	s := userlab.PagedStack(t)
	eachProof(t, func(t *testing.T, engine string) {
		before, err := s.Present()
		if err != nil || before != 0 {
			t.Fatalf("%d pages present, %v", before, err)
		}
		p := prove(t, Options{Engine: engine}, []int{s.Pid})
		after, err := s.Present()
		if err != nil || after != 0 {
			t.Errorf("%d pages of the stack were brought in, %v", after, err)
		}
		_, th := p.thread(t, s.Tid)
		if w := th.UserWalk; w.Flags&kcdata.UserPagedOut == 0 || w.Flags&kcdata.UserComplete != 0 || w.Bytes != 0 || w.Absent == 0 {
			t.Errorf("%+v", *w)
		}
		if len(th.User) > 1 {
			t.Errorf("%d frames of a stack that is not there", len(th.User))
		}
	})
}

// registerFrames is how many frames a thread has without its stack: arm64 keeps the
// first return address in a register.
func registerFrames() int {
	if runtime.GOARCH == "arm64" {
		return 2
	}
	return 1
}

// While a process unmaps and maps the stack of a thread all the time, each capture
// has what was there, or the mark.
func TestUserProofRemappedStack(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	s := userlab.RemapStack(t)
	eachProof(t, func(t *testing.T, engine string) {
		ses := session(t, Options{Engine: engine, ArrivalBudget: time.Second})
		marked, whole := 0, 0
		for range testneed.Length(5, 15) {
			_, snap, file := captureWhole(t, ses, Request{Pids: []int{s.Pid}})
			p := named(t, snap, file)
			task, th := p.thread(t, s.Tid)
			got := frames(task, th)
			for i, f := range got {
				if i >= registerFrames() && f.Func != "paged_leaf" {
					t.Errorf("frame %d of %v", i, got)
				}
			}
			if th.UserWalk.Flags&kcdata.UserPagedOut != 0 {
				t.Error("paged out, it says, of memory that nothing was ever written to")
			}
			if th.UserWalk.Flags&kcdata.UserNoPage != 0 {
				marked++
			} else {
				whole++
			}
		}
		t.Logf("stack there %d times, marked absent %d times", whole, marked)
	})
}

// In execve before the point of no return the stack is the old program's; past it
// the registers are of a program that is gone: no frame of it may be claimed.
func TestUserProofExec(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	slow, late := userlab.SlowExec(t), userlab.LateExec(t)
	eachProof(t, func(t *testing.T, engine string) {
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

// A task whose memory is gone says so and has no stack; one that is held before
// that, in do_exit, still has its own.
func TestUserProofExiting(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	f := testtask.Start(t, testtask.MidExit, testtask.TracedExit)
	eachProof(t, func(t *testing.T, engine string) {
		p := prove(t, Options{Engine: engine}, pidsOf(f))
		gone := 0
		for _, task := range p.Tasks {
			for _, th := range task.Threads {
				if w := th.UserWalk; w != nil && w.Flags&kcdata.UserNoMemory != 0 {
					gone++
					if len(th.User) > 0 || w.Bytes+w.Links > 0 {
						t.Errorf("thread %d: %v (%s)", th.ID, frames(task, th), note(th))
					}
				}
			}
		}
		if gone == 0 {
			t.Error("nobody's memory is gone")
		}
	})
}

// A 32-bit thread is marked, and has no stack.
func TestUserProof32Bit(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	requireBPF(t)
	if !slices.ContainsFunc(userlab.Actors(), func(a userlab.Actor) bool { return a.Name == "elf32" }) {
		t.Skip("no 32-bit programs here")
	}
	if err := runs32Bit(t); err != nil {
		t.Skipf("this kernel runs no 32-bit programs: %v", err)
	}
	p32 := userlab.Start(t, "elf32").Of(t, "elf32")
	eachProof(t, func(t *testing.T, engine string) {
		_, th := prove(t, Options{Engine: engine}, []int{p32.Pid}).thread(t, p32.Pid)
		if w := th.UserWalk; w == nil || w.Flags&kcdata.UserCompat == 0 || len(th.User) > 0 || w.Bytes+w.Links > 0 {
			t.Errorf("%v (%s)", th.User, note(th))
		}
	})
}

// A stack pointer into what is no memory of the process is marked, and that page is
// not read: the kernel's pages beside the vDSO, a device's registers.
func TestUserProofNoMemory(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	stands := []*userlab.OddStack{userlab.VvarStack(t)}
	switch d, err := userlab.DeviceStack(t); {
	case err == nil:
		stands = append(stands, d)
	case !errors.Is(err, os.ErrNotExist):
		t.Fatal(err)
	default:
		t.Log(err)
	}
	eachProof(t, func(t *testing.T, engine string) {
		for _, s := range stands {
			_, th := prove(t, Options{Engine: engine, KeepStacks: true}, []int{s.Pid}).thread(t, s.Tid)
			w := th.UserWalk
			const marks = kcdata.UserRefused | kcdata.UserPagedOut | kcdata.UserNoPage
			if w.Flags&marks == 0 || w.Flags&kcdata.UserAltStack == 0 || w.Flags&kcdata.UserComplete != 0 || w.Links > 0 || len(th.User) > registerFrames() {
				t.Errorf("%s: %v (%s)", s.Name, th.User, note(th))
			}
			for _, b := range th.UserBytes {
				if b.Addr < (s.SP|4095)+1 {
					t.Errorf("%s: %d bytes of it at %#x were read", s.Name, len(b.Data), b.Addr)
				}
			}
		}
	})
}
