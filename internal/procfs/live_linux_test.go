package procfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

const everyFile = ReadStat | ReadStatus | ReadStack | ReadWchan | ReadSchedstat | ReadSyscall | ReadIO

// gone says that an error is what a task that ends, or is not ours to look at,
// answers with.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrPermission)
}

// Everything under /proc parses: the same threads by both paths, and their
// files agree with each other.
func TestWholeMachine(t *testing.T) {
	pool := NewReaders(0, 10*time.Second)
	defer pool.Close()
	for _, f := range []FS{{}, {Readers: pool}} {
		tasks, err := f.Tasks()
		if err != nil || !slices.Contains(tasks, os.Getpid()) {
			t.Fatalf("tasks %v, %v", tasks, err)
		}
		r := NewThreadReader(f, everyFile)
		seen := 0
		for _, tgid := range tasks {
			checkTask(t, f, tgid)
			tids, err := f.Threads(tgid)
			if err != nil && !gone(err) {
				t.Error(err)
			}
			for _, tid := range tids {
				seen += checkThread(t, r, tgid, tid)
			}
		}
		if seen < 5 {
			t.Errorf("only %d threads read whole", seen)
		}
	}
}

func onlyGone(err error) bool {
	if err == nil {
		return true
	}
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		if !gone(e) {
			return false
		}
	}
	return true
}

func checkTask(t *testing.T, f FS, tgid int) {
	t.Helper()
	st, err1 := f.Stat(tgid)
	status, err2 := f.Status(tgid)
	cg, err3 := parsed(f, TaskDir(tgid), "cgroup", ParseCgroup)
	_, err4 := parsed(f, TaskDir(tgid), "oom_score_adj", ParseOOMScoreAdj)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil && !gone(err) {
			t.Error(err)
		}
	}
	if path := CgroupPath(cg).Path; err3 == nil && !strings.HasPrefix(path, "/") {
		t.Errorf("task %d: cgroup %q of %+v", tgid, path, cg)
	}
	if err1 == nil && err2 == nil && (st.PID != tgid || status.Tgid != tgid) {
		t.Errorf("task %d: stat %d, status %d", tgid, st.PID, status.Tgid)
	}
}

// checkThread says 1 if it could hold the thread's files against each other. A
// thread may exec or be reparented between two of them, but not three times.
func checkThread(t *testing.T, r *ThreadReader, tgid, tid int) int {
	t.Helper()
	const need = ReadStat | ReadStatus
	problem := ""
	for range 3 {
		th, err := r.Read(tgid, tid)
		if !onlyGone(err) {
			t.Error(err)
		}
		if th.Have&need != need {
			return 0
		}
		if problem = contradiction(th, tgid, tid); problem == "" {
			return 1
		}
	}
	t.Errorf("thread %d/%d: %s", tgid, tid, problem)
	return 0
}

func contradiction(th *Thread, tgid, tid int) string {
	st, status := &th.Stat, &th.Status
	kernel := st.Flags&0x200000 != 0 // PF_KTHREAD
	switch {
	case st.PID != tid || status.Pid != tid || status.Tgid != tgid || status.PPid != st.PPID:
		return fmt.Sprintf("stat %+v, status %+v", st, status)
	case status.Present&StatusHasKthread != 0 && status.Kthread != kernel:
		return fmt.Sprintf("flags %#x, Kthread %v", st.Flags, status.Kthread)
	case len(status.NSpid) > 0 && status.NSpid[0] != tid:
		return fmt.Sprintf("NSpid %v", status.NSpid)
	case kernel && status.Present&StatusHasMemory != 0:
		return "a kernel thread with memory"
	}
	return ""
}

// A thread made to a known state says just that in its files.
func TestKnownThread(t *testing.T) {
	testneed.Live(t)
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	const name = "x) R 1 (\n\\y" // up to 15 bytes
	tid := make(chan int)
	done := make(chan struct{})
	buf := make([]byte, 1)
	go func() {
		defer close(done)
		runtime.LockOSThread() // its mask and name end with it
		nul := append([]byte(name), 0)
		unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&nul[0])), 0, 0, 0)
		set := unix.Sigset_t{}
		set.Val[0] = 1<<(unix.SIGUSR2-1) | 1<<(unix.SIGWINCH-1)
		unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
		unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGUSR2)
		tid <- unix.Gettid()
		unix.Read(p[0], buf)
	}()
	id := <-tid
	defer func() { unix.Close(p[1]); <-done }()
	want := everyFile
	if os.Geteuid() != 0 {
		want &^= ReadStack // the stack is for CAP_SYS_ADMIN, one's own too
	}
	r := NewThreadReader(FS{}, want)
	waitFor(t, "the thread to sleep in read", func() bool {
		th, err := r.Read(os.Getpid(), id)
		return err == nil && th.Stat.State == 'S' && th.Syscall.Nr == unix.SYS_READ && th.Syscall.Args[0] == uint64(p[0])
	})
	th, err := r.Read(os.Getpid(), id)
	if err != nil {
		t.Fatal(err)
	}
	if th.Stat.Comm != name {
		t.Errorf("name %q, stat %q", name, th.Stat.Comm)
	}
	const usr2 = 1 << (unix.SIGUSR2 - 1)
	if th.Status.SigPnd != usr2 || th.Status.SigBlk&(usr2|1<<(unix.SIGWINCH-1)) != usr2|1<<(unix.SIGWINCH-1) {
		t.Errorf("pending %#x, blocked %#x", th.Status.SigPnd, th.Status.SigBlk)
	}
	if got := th.Syscall; got.Args[0] != uint64(p[0]) || got.Args[2] != 1 || !got.InUserSpace() || got.Args[1] != uint64(uintptr(unsafe.Pointer(&buf[0]))) {
		t.Errorf("syscall %+v, want read of fd %d", got, p[0])
	}
	inPipe := func(f Frame) bool { return strings.Contains(f.Symbol, "pipe_read") && f.Offset < f.Size }
	if want&ReadStack != 0 && (!slices.ContainsFunc(th.Stack.Frames, inPipe)) {
		t.Errorf("stack %+v", th.Stack)
	}
	if th.Wchan == "" || th.Status.VoluntaryCtxtSwitches == 0 || th.Schedstat.RunNs == 0 {
		t.Errorf("wchan %q, switches %d, schedstat %+v", th.Wchan, th.Status.VoluntaryCtxtSwitches, th.Schedstat)
	}
}

// Own process: system calls are the witnesses.
func TestOwnProcess(t *testing.T) {
	f, pid := FS{}, os.Getpid()
	status, err := f.Status(pid)
	if err != nil {
		t.Fatal(err)
	}
	if status.PPid != os.Getppid() || status.UID[0] != uint32(os.Getuid()) || status.GID[1] != uint32(os.Getegid()) ||
		status.Present&StatusHasMemory == 0 || status.VmRSS == 0 || status.VmSize < status.VmRSS {
		t.Errorf("%+v", status)
	}
	exe, err := f.one(TaskDir(pid), File{Name: "exe", Op: OpLink})
	if want, _ := os.Readlink("/proc/self/exe"); string(exe) != want || err != nil {
		t.Errorf("exe %q, want %q, %v", exe, want, err)
	}
	inode, isFirst, err := f.PidNamespace()
	var ns unix.Stat_t
	if e := unix.Stat("/proc/self/ns/pid", &ns); err != nil || e != nil || uint64(inode) != ns.Ino || isFirst != (inode == FirstPidNS) {
		t.Errorf("pid namespace %d, want %d, first %v, %v, %v", inode, ns.Ino, isFirst, err, e)
	}
}

// A task that is gone is not an empty task: its kept number answers not at all.
func TestGoneTask(t *testing.T) {
	testneed.Live(t)
	cmd := exec.Command("/bin/true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	f := FS{}
	_, err1 := f.Stat(pid)
	_, err2 := f.Threads(pid)
	th, err3 := NewThreadReader(f, everyFile).Read(pid, pid)
	for _, err := range []error{err1, err2, err3} {
		if err == nil || !gone(err) && !onlyGone(err) {
			t.Errorf("%v", err)
		}
	}
	if th.Have != 0 || !strings.Contains(err3.Error(), strconv.Itoa(pid)) {
		t.Errorf("have %#x, %v", th.Have, err3)
	}
}

// A zombie has a stat and a status, no no memory.
func TestZombie(t *testing.T) {
	testneed.Live(t)
	cmd := exec.Command("/bin/true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	f, pid := FS{}, cmd.Process.Pid
	waitFor(t, "the zombie", func() bool { st, err := f.Stat(pid); return err == nil && st.State == 'Z' })
	status, err := f.Status(pid)
	if err != nil || status.Pid != pid || status.Present&StatusHasMemory != 0 {
		t.Errorf("%+v, %v", status, err)
	}
}

// Threads in batches, whatever their number, are the threads asked for, and a
// missing one among them is missing alone.
func TestThreadsInBatches(t *testing.T) {
	pool := NewReaders(0, 10*time.Second)
	defer pool.Close()
	pid := os.Getpid()
	for _, f := range []FS{{}, {Readers: pool}} {
		r := NewThreadReader(f, ReadStat|ReadWchan)
		for _, n := range []int{0, 1, threadBatch - 1, threadBatch, threadBatch + 1, 3*threadBatch + 2} {
			tids := make([]int, n)
			for i := range tids {
				tids[i] = pid
			}
			if n > 5 {
				tids[5] = 1 << 30 // beyond any pid_max
			}
			i := 0
			for th, err := range r.Threads(pid, tids) {
				missing := n > 5 && i == 5
				if th.Tid != tids[i] || missing != (th.Have == 0) || missing != errors.Is(err, fs.ErrNotExist) || !missing && th.Stat.PID != pid {
					t.Fatalf("%d of %d: %+v, %v", i, n, th, err)
				}
				i++
			}
			if i != n {
				t.Errorf("%d of %d threads", i, n)
			}
		}
	}
}
