package snapshot

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// plain are the bare function names of a stack, leaf first, by the file's own
// symbol table.
func plain(tb testing.TB, s *kcdata.Snapshot, th *kcdata.Thread) []string {
	tb.Helper()
	var out []string
	for _, addr := range th.Kernel {
		sym, ok := s.Symbols.Name(addr)
		if !ok {
			tb.Errorf("thread %d (%s): address %#x has no name in the file", th.ID, th.Name, addr)
		}
		out = append(out, sym.Name)
	}
	return out
}

func has(stack []string, names ...string) bool {
	return slices.ContainsFunc(stack, func(f string) bool {
		f, _, _ = strings.Cut(f, ".") // compiler suffixes
		return slices.Contains(names, f)
	})
}

// What the fixture claims of each task is what either engine's file says.
func TestKnownStates(t *testing.T) {
	testneed.Smoke(t)
	requireBPF(t)
	needsNames(t)
	f := testtask.Start(t, testtask.All()...)
	for _, engine := range []string{EnginePull, EngineProcfs} {
		_, snap, _ := takeWhole(t, Options{Engine: engine}, Request{})
		tasks := tasksByID(snap)
		for i := range f.Children {
			c := &f.Children[i]
			task := tasks[uint64(c.Pid)]
			if task == nil {
				t.Errorf("%s: %v is not in the file", engine, c)
				continue
			}
			if len(task.Threads) != c.Want.Threads || int(task.Linux.NrThreads) != c.Want.Threads {
				t.Errorf("%s: %v: %d threads, says %d, want %d", engine, c, len(task.Threads), task.Linux.NrThreads, c.Want.Threads)
			}
			if task.Name != c.Want.Comm || task.IsKernel() != c.Want.Kernel {
				t.Errorf("%s: %v: name %q, want %q; kernel %v", engine, c, task.Name, c.Want.Comm, task.IsKernel())
			}
			for _, th := range task.Threads {
				wantThread(t, engine, snap, c, th)
			}
		}
	}
}

func wantThread(t *testing.T, engine string, snap *kcdata.Snapshot, c *testtask.Child, th *kcdata.Thread) {
	t.Helper()
	want := c.Want.Of(c.Pid, int(th.ID))
	stack := plain(t, snap, th)
	if err := want.Check(letter(&th.Linux), stack); err != nil {
		t.Errorf("%s: %v thread %d: %v", engine, c, th.ID, err)
	}
	if engine == EnginePull && len(want.Stack) > 0 && (len(stack) == 0 || !has(stack[len(stack)-1:], "entry_SYSCALL_64_after_hwframe", "el0t_64_sync", "ret_from_fork_asm", "ret_from_fork") ||
		th.Linux.KstackErr != 0 || th.Linux.Present&(kcdata.ThreadTruncated|kcdata.ThreadNeverRan) != 0) {
		t.Errorf("%v thread %d: stack %v, error %d, presence %#x", c, th.ID, stack, th.Linux.KstackErr, th.Linux.Present)
	}
	if letter(&th.Linux) == 'D' && !want.Exiting && th.Snapshot.State != 0x1|0x8 {
		t.Errorf("%s: %v thread %d: ths_state %#x, want waiting and uninterruptible", engine, c, th.ID, th.Snapshot.State)
	}
	if int(th.Linux.Nice) != c.Want.Nice || th.Name != c.Want.Comm {
		t.Errorf("%s: %v thread %d: nice %d, name %q", engine, c, th.ID, th.Linux.Nice, th.Name)
	}
	if exiting := th.Linux.Flags&exitingFlag != 0; exiting != want.Exiting {
		t.Errorf("%s: %v thread %d: flags %#x", engine, c, th.ID, th.Linux.Flags)
	}
	if want.Syscall != testtask.NoSyscall && (th.Syscall == nil || th.Syscall.Nr != int64(want.Syscall)) {
		t.Errorf("%s: %v thread %d: system call %+v, want %d", engine, c, th.ID, th.Syscall, want.Syscall)
	}
	if c.Want.InnerPid != 0 && (len(th.NS) == 0 || int(th.NS[len(th.NS)-1].Tid) != c.Want.InnerPid) {
		t.Errorf("%s: %v thread %d: namespaces %v, want number %d in the innermost", engine, c, th.ID, th.NS, c.Want.InnerPid)
	}
	if c.Want.Kernel && (th.Syscall != nil || th.Linux.Present&kcdata.ThreadUserMode != 0) {
		t.Errorf("%s: kernel thread %v has a user side: %+v", engine, c, th.Syscall)
	}
}

// Past its exit point, or not yet, and what there is no stack of.
func TestExitingTasks(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	f := testtask.Start(t, testtask.Zombie, testtask.ZombieLeader, testtask.MidExit, testtask.TracedExit, testtask.Sleeping)
	_, snap, _ := takeWhole(t, Options{Engine: EnginePull}, Request{})
	tasks := tasksByID(snap)
	for _, w := range []struct {
		kind    testtask.Kind
		past    bool
		stack   string // "": none
		state   byte
		memory  bool
		syscall int64 // 0: no record
	}{
		{testtask.Zombie, true, "", 'Z', false, 0},
		{testtask.ZombieLeader, false, "", 'Z', false, 0},
		{testtask.MidExit, true, "do_exit", 'D', false, unix.SYS_EXIT_GROUP},
		{testtask.TracedExit, false, "do_exit", 't', true, unix.SYS_EXIT_GROUP},
		{testtask.Sleeping, false, "hrtimer_nanosleep", 'S', true, unix.SYS_CLOCK_NANOSLEEP},
	} {
		c := f.One(w.kind, "")
		task := tasks[uint64(c.Pid)]
		if task.Transitioning != w.past || (task.Memory != nil) != w.memory {
			t.Errorf("%v: transitioning %v, want %v; memory %+v", c, task.Transitioning, w.past, task.Memory)
		}
		if task.Transitioning && (task.Exiting.Pid != int32(c.Pid) || task.Exiting.TransitionType != 1 || task.Name != c.Want.Comm) {
			t.Errorf("%v: %+v", c, task.Exiting)
		}
		th := task.Threads[0]
		stack := plain(t, snap, th)
		switch {
		case w.stack == "" && (len(stack) > 0 || th.Linux.KstackErr == 0 || th.Linux.Present&kcdata.ThreadHasStack == 0):
			t.Errorf("%v: stack %v, error %d; want no stack, and why", c, stack, th.Linux.KstackErr)
		case w.stack != "" && !has(stack, w.stack):
			t.Errorf("%v: stack %v, want %s in it", c, stack, w.stack)
		}
		if letter(&th.Linux) != w.state {
			t.Errorf("%v: state %c, want %c", c, letter(&th.Linux), w.state)
		}
		if (th.Syscall == nil) != (w.syscall == 0) || th.Syscall != nil && th.Syscall.Nr != w.syscall {
			t.Errorf("%v: system call %+v, want %d", c, th.Syscall, w.syscall)
		}
		if u := th.UserWalk; w.kind == testtask.MidExit && (u == nil || u.Flags&kcdata.UserNoMemory == 0 || len(th.User) > 0) {
			t.Errorf("%v: its memory is gone: walk %+v, user stack %#x", c, u, th.User)
		}
	}
	if n := len(tasks[uint64(f.One(testtask.ZombieLeader, "").Pid)].Threads); n != 3 {
		t.Errorf("%d threads under a zombie leader, want 3", n)
	}
}
