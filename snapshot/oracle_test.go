package snapshot

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/engine/proc"
	"stackshot/internal/engine/stop"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// This file holds pull against a third party: what the kernel says in /proc,
// read here by hand and with nothing of the engines.

func slurp(tb testing.TB, path string) string {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// statFields are the fields of a stat file behind the name, from "state" on.
func statFields(tb testing.TB, dir string) []string {
	tb.Helper()
	text := slurp(tb, dir+"/stat")
	return strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
}

// lineOf is the value of one "Key:" line.
func lineOf(tb testing.TB, text, key string) []string {
	tb.Helper()
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.Fields(v)
		}
	}
	tb.Fatalf("no line %s", key)
	return nil
}

// sayThread is a thread of the file in the words of /proc.
func sayThread(task *kcdata.Task, th *kcdata.Thread) map[string]string {
	l := &th.Linux
	return map[string]string{
		"state": string(letter(l)), "ppid": fmt.Sprint(task.Linux.Ppid), "pgrp": fmt.Sprint(task.Linux.Pgid),
		"session": fmt.Sprint(task.Linux.Sid), "flags": fmt.Sprint(l.Flags), "minflt": fmt.Sprint(l.MinFlt),
		"majflt": fmt.Sprint(l.MajFlt), "priority": fmt.Sprint(l.Prio - 100), "nice": fmt.Sprint(l.Nice),
		"num_threads": fmt.Sprint(task.Linux.NrThreads), "starttime": fmt.Sprint(l.StartBoottime / proc.TickNs),
		"processor": fmt.Sprint(l.CPU), "rt_priority": fmt.Sprint(l.RtPriority), "policy": fmt.Sprint(l.Policy),
		"exit_code": fmt.Sprint(l.ExitCode),
		"schedstat": fmt.Sprint(l.SumExecRuntime, l.RunDelay, l.Pcount),
		"switches":  fmt.Sprint(l.Nvcsw, l.Nivcsw),
		"uid":       fmt.Sprint(task.Linux.UID, task.Linux.EUID), "gid": fmt.Sprint(task.Linux.GID, task.Linux.EGID),
		"signals": fmt.Sprintf("%016x %016x %016x", th.Signals.Pending, th.Signals.SharedPending, th.Signals.Blocked),
		"nspid":   fmt.Sprint(append([]uint32{l.Tid}, tidsOf(th.NS)...)),
		"io":      fmt.Sprint(th.IO.Rchar, th.IO.Wchar, th.IO.Syscr, th.IO.Syscw, th.IO.ReadBytes, th.IO.WriteBytes, th.IO.CancelledWrite),
	}
}

func tidsOf(ns []kcdata.LinuxThreadNS) (out []uint32) {
	for _, n := range ns {
		out = append(out, n.Tid)
	}
	return out
}

// procSays is the same, from /proc.
func procSays(tb testing.TB, pid, tid int) map[string]string {
	tb.Helper()
	dir := fmt.Sprintf("/proc/%d/task/%d", pid, tid)
	out := map[string]string{}
	st := statFields(tb, dir)
	for name, field := range map[string]int{ // numbered as in proc_pid_stat(5)
		"state": 3, "ppid": 4, "pgrp": 5, "session": 6, "flags": 9, "minflt": 10, "majflt": 12, "priority": 18,
		"nice": 19, "num_threads": 20, "starttime": 22, "processor": 39, "rt_priority": 40, "policy": 41, "exit_code": 52,
	} {
		out[name] = st[field-3]
	}
	out["schedstat"] = strings.Join(strings.Fields(slurp(tb, dir+"/schedstat")), " ")
	status := slurp(tb, dir+"/status")
	first := func(key string) string { return lineOf(tb, status, key)[0] }
	out["switches"] = first("voluntary_ctxt_switches") + " " + first("nonvoluntary_ctxt_switches")
	out["uid"] = strings.Join(lineOf(tb, status, "Uid")[:2], " ")
	out["gid"] = strings.Join(lineOf(tb, status, "Gid")[:2], " ")
	out["signals"] = first("SigPnd") + " " + first("ShdPnd") + " " + first("SigBlk")
	out["nspid"] = fmt.Sprint(lineOf(tb, status, "NSpid"))
	io := slurp(tb, dir+"/io")
	var counts []string
	for _, key := range []string{"rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes"} {
		counts = append(counts, lineOf(tb, io, key)[0])
	}
	out["io"] = strings.Join(counts, " ")
	return out
}

func TestOracleThreadsAreWhatProcSays(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	f := testtask.Start(t, testtask.All()...)
	_, snap, _ := takeWhole(t, Options{Engine: EnginePull}, Request{})
	tasks, threads := tasksByID(snap), threadsByID(snap)
	for i := range f.Children {
		c := &f.Children[i]
		if c.Want.Kernel || strings.Contains(c.Want.Leader.States, "R") {
			continue // runs
		}
		for _, tid := range c.Tids {
			want := procSays(t, c.Pid, tid)
			got := sayThread(tasks[uint64(c.Pid)], threads[uint64(tid)])
			for key := range want {
				if got[key] != want[key] {
					t.Errorf("%v thread %d: %s %q, /proc says %q", c, tid, key, got[key], want[key])
				}
			}
		}
	}
}

// What only pull knows, each by another way to the same truth.
func TestOracleOfWhatOnlyPullKnows(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	f := testtask.Start(t, testtask.All()...)
	_, snap, _ := takeWhole(t, Options{Engine: EnginePull}, Request{})
	tasks := tasksByID(snap)
	var fsBase *uint64
	for i := range f.Children {
		c := &f.Children[i]
		task := tasks[uint64(c.Pid)]
		wantCgroup(t, c, task)
		if task.Memory == nil {
			if task.Exe != nil || (task.ExePath != "") != (c.Kind == testtask.ZombieLeader) { // /proc has it of its other threads
				t.Errorf("%v has no memory, and an executable %+v %q", c, task.Exe, task.ExePath)
			}
			continue
		}
		wantExe(t, c, task)
		maps := strings.Count(slurp(t, fmt.Sprintf("/proc/%d/maps", c.Pid)), "\n")
		maps -= strings.Count(slurp(t, fmt.Sprintf("/proc/%d/maps", c.Pid)), "[vsyscall]") // no mapping of its own
		if task.Memory.MapCount != uint64(maps) {
			t.Errorf("%v: %d mappings, maps has %d", c, task.Memory.MapCount, maps)
		}
		l := &task.Threads[0].Linux
		if fsBase == nil {
			fsBase = &l.FsBase
		}
		if l.Present&kcdata.ThreadHasFsBase == 0 || l.FsBase != *fsBase || runtime.GOARCH == "amd64" && l.FsBase == 0 {
			t.Errorf("%v: fs_base %#x, that of its siblings %#x", c, l.FsBase, *fsBase)
		}
	}
	for kind, flag := range map[testtask.Kind]uint32{ // SIGNAL_* of linux/sched/signal.h
		testtask.Stopped: 0x1, testtask.Zombie: 0x4, testtask.MidExit: 0x4, testtask.InPidNS: 0x40, testtask.Sleeping: 0,
	} {
		if got := tasks[uint64(f.One(kind, "").Pid)].Linux.SignalFlags; got != flag {
			t.Errorf("%v: signal flags %#x, want %#x", kind, got, flag)
		}
	}
}

// wantCgroup compares with the inode of the cgroup's directory.
func wantCgroup(t *testing.T, c *testtask.Child, task *kcdata.Task) {
	t.Helper()
	root := unifiedMount(t)
	_, path, ok := strings.Cut(slurp(t, fmt.Sprintf("/proc/%d/cgroup", c.Pid)), "0::")
	if root == "" || !ok {
		return // no unified hierarchy here
	}
	path, _, _ = strings.Cut(path, "\n")
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(root, path), &st); err != nil {
		t.Fatal(err)
	}
	if task.Linux.CgroupID != st.Ino || task.Linux.Present&kcdata.TaskHasCgroup == 0 {
		t.Errorf("%v: cgroup id %d, inode of %s is %d", c, task.Linux.CgroupID, path, st.Ino)
	}
}

func unifiedMount(tb testing.TB) string {
	tb.Helper()
	for line := range strings.Lines(slurp(tb, "/proc/self/mounts")) {
		if f := strings.Fields(line); f[2] == "cgroup2" {
			return f[1]
		}
	}
	return ""
}

func wantExe(t *testing.T, c *testtask.Child, task *kcdata.Task) {
	t.Helper()
	link := fmt.Sprintf("/proc/%d/exe", c.Pid)
	path, err := os.Readlink(link)
	if err != nil {
		t.Fatal(err)
	}
	if task.ExePath != path {
		t.Errorf("%v: executable %q, want %q", c, task.ExePath, path)
	}
	name := strings.TrimSuffix(filepath.Base(path), " (deleted)")
	if task.Exe == nil || task.Exe.FileName() != name[:min(len(name), 63)] {
		t.Errorf("%v: executable %+v, want %q", c, task.Exe, name)
		return
	}
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := unix.Stat(link, &st); err != nil {
		t.Fatal(err)
	}
	unix.Statfs(path, &fs)
	if fs.Type == unix.OVERLAYFS_SUPER_MAGIC || fs.Type == unix.BTRFS_SUPER_MAGIC {
		return // they show other numbers than their inodes have
	}
	dev := unix.Major(st.Dev)<<20 | unix.Minor(st.Dev)
	if task.Exe.Ino != st.Ino || task.Exe.Dev != dev {
		t.Errorf("%v: inode %d on %#x, stat says %d on %#x", c, task.Exe.Ino, task.Exe.Dev, st.Ino, dev)
	}
}

// dead is what a task's ended threads have left: the whole's figure less that
// of each thread alive.
func dead(tb testing.TB, pid int, value func(dir string) uint64) uint64 {
	tb.Helper()
	whole := value(fmt.Sprintf("/proc/%d", pid))
	tids, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		tb.Fatal(err)
	}
	for _, tid := range tids {
		dir := fmt.Sprintf("/proc/%d/task/%s", pid, tid.Name())
		if _, err := os.Stat(dir + "/stat"); err == nil { // else it ends just now
			whole -= value(dir)
		}
	}
	return whole
}

// A loop in user mode has user time.
func TestOracleOfUserTime(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	pid := testtask.Start(t, testtask.Spinning).Children[0].Pid
	s := session(t, Options{Engine: EnginePull})
	for end := time.Now().Add(testneed.Patience); ; {
		_, snap, _ := captureOnce(t, s, Request{Pids: []int{pid}})
		th := threadsByID(snap)[uint64(pid)]
		lx := th.Linux
		if lx.Utime+lx.Stime < uint64(100*time.Millisecond) && time.Now().Before(end) {
			continue // ticks that meet the kernel count for it
		}
		if lx.Utime <= lx.Stime || th.Snapshot.UserTime <= th.Snapshot.SysTime {
			t.Errorf("user time %d and %d, system time %d and %d", lx.Utime, th.Snapshot.UserTime, lx.Stime, th.Snapshot.SysTime)
		}
		return
	}
}

var processBegan = time.Now()

// The dead_ figures: of a thread of ours that ran, wrote, faulted and ended.
func TestOracleOfEndedThreads(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	endThread(t)
	pid := os.Getpid()
	minflt := func(dir string) uint64 {
		n, err := strconv.ParseUint(statFields(t, dir)[10-3], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	written := func(dir string) uint64 {
		n, err := strconv.ParseUint(lineOf(t, slurp(t, dir+"/io"), "write_bytes")[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	bytesBefore := dead(t, pid, written)
	_, snap, _ := takeWhole(t, Options{Engine: EnginePull}, Request{Pids: []int{pid}})
	faultsAfter, bytesAfter := dead(t, pid, minflt), dead(t, pid, written)
	lx := snap.Tasks[0].Linux
	const all = kcdata.TaskHasSignal | kcdata.TaskHasFaults | kcdata.TaskHasGroupIO
	if lx.Present&all != all {
		t.Fatalf("presence %#x, want %#x in it", lx.Present, all)
	}
	// Of faults only a bound can be told: our other threads fault all the time.
	if lx.DeadMinFlt < burnPages || lx.DeadMinFlt > faultsAfter+1000 {
		t.Errorf("dead_min_flt %d, want at least %d and about %d", lx.DeadMinFlt, burnPages, faultsAfter)
	}
	if lx.DeadWriteB < bytesBefore || lx.DeadWriteB > bytesAfter {
		t.Errorf("dead_write_bytes %d, want %d to %d", lx.DeadWriteB, bytesBefore, bytesAfter)
	}
	// Threads of earlier tests count too: at most all CPUs since this process began.
	most := time.Since(processBegan) * time.Duration(runtime.NumCPU())
	if ran := time.Duration(lx.DeadUtime + lx.DeadStime); ran < burnTime/2 || ran > most { // time: no load lets a CPU do more
		t.Errorf("ended threads ran for %v, want %v to %v", ran, burnTime/2, most)
	}
	ts := snap.Tasks[0].Snapshot
	faults := lx.DeadMinFlt + lx.DeadMajFlt
	for _, th := range snap.Tasks[0].Threads {
		faults += th.Linux.MinFlt + th.Linux.MajFlt
	}
	if ts.UserTimeTerminated != lx.DeadUtime || ts.SysTimeTerminated != lx.DeadStime || uint64(ts.Faults) != faults {
		t.Errorf("task snapshot %+v does not say what %+v does", ts, lx)
	}
}

const (
	burnTime  = 200 * time.Millisecond
	burnPages = 512
)

// endThread has one OS thread of ours do work and end.
func endThread(tb testing.TB) {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "written")
	ended := make(chan int)
	burn := func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for end := time.Now().Add(burnTime); time.Now().Before(end); {
		}
		mem, err := unix.Mmap(-1, 0, burnPages*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err == nil {
			unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
			for i := 0; i < len(mem); i += os.Getpagesize() {
				mem[i] = 1
			}
			unix.Munmap(mem)
		}
		os.WriteFile(file, bytes.Repeat([]byte{1}, 1<<20), 0o600)
		ended <- unix.Gettid()
	}
	for {
		go burn()
		tid := <-ended
		if tid == os.Getpid() {
			continue // the first thread parks instead of ending; it stays taken, so the next is another
		}
		for i := 0; i < 1000 && stop.ThreadExists(tid); i++ {
			time.Sleep(time.Millisecond)
		}
		if !stop.ThreadExists(tid) {
			return
		}
		tb.Fatalf("thread %d did not end", tid)
	}
}
