package limits

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
)

// reservedPids is how many low numbers the kernel gives out only once, after boot
// (RESERVED_PIDS, kernel/pid.c).
const reservedPids = 300

// Pids is how many more threads and processes there may be. Counting those of the user takes
// long, so Pids does it only if fewer than enough could be left for the user.
func (m Machine) Pids(enough int64) Room {
	r := unbounded
	for _, g := range m.groups("pids") {
		most, ok := m.number(g.dir, "pids.max")
		used, ok2 := m.number(g.dir, "pids.current")
		if ok && ok2 {
			r = r.within(most, used, "pids.max of "+g.dir)
		}
	}
	_, threads := m.Threads()
	if threads == 0 {
		return r
	}
	if most, ok := m.number("/proc/sys/kernel", "threads-max"); ok {
		r = r.within(most, threads, "kernel.threads-max")
	}
	if most, ok := m.number("/proc/sys/kernel", "pid_max"); ok {
		r = r.within(most, threads+reservedPids, "kernel.pid_max")
	}
	if limit, ok := userLimit(); ok && limit-threads < min(enough, r.Free) {
		r = r.within(limit, m.threadsOf(unix.Getuid()), fmt.Sprintf("RLIMIT_NPROC of uid %d", unix.Getuid()))
	}
	return r
}

// NeedPids says why there cannot be n more threads and processes; nil: there can be.
func (m Machine) NeedPids(n int64) error {
	if r := m.Pids(n); r.Free < n {
		return fmt.Errorf("%d more threads and processes are allowed, and %d are needed: %v", r.Free, n, r)
	}
	return nil
}

// Threads is how many threads want to run on this machine, and how many there are: the
// fourth field of /proc/loadavg. 0: not known.
func (m Machine) Threads() (running, all int64) {
	var a, b, c string
	text, _ := os.ReadFile(m.Root + "/proc/loadavg")
	fmt.Sscanf(string(text), "%s %s %s %d/%d", &a, &b, &c, &running, &all)
	return running, all
}

// userLimit is RLIMIT_NPROC, and whether it holds: it does not for uid 0, nor with the
// capabilities to exceed it (copy_process, kernel/fork.c).
func userLimit() (int64, bool) {
	var l unix.Rlimit
	if unix.Getuid() == 0 || unix.Getrlimit(unix.RLIMIT_NPROC, &l) != nil || l.Cur > 1<<32 {
		return 0, false
	}
	have, _ := Capabilities()
	return int64(l.Cur), have&(1<<unix.CAP_SYS_ADMIN|1<<unix.CAP_SYS_RESOURCE) == 0
}

// Capabilities gives the effective capabilities of the calling thread, a bit each.
func Capabilities() (uint64, error) {
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, err
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective), nil
}

// threadsOf counts the threads of a user's processes.
func (m Machine) threadsOf(uid int) (n int64) {
	list, err := os.ReadDir(m.Root + "/proc")
	if err != nil {
		return 0
	}
	for _, e := range list {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if dir := m.Root + "/proc/" + e.Name(); unix.Stat(dir, &st) != nil || int(st.Uid) != uid {
			continue
		}
		if s, err := (procfs.FS{Root: m.Root + "/proc"}).Stat(pid); err == nil {
			n += int64(s.NumThreads)
		}
	}
	return n
}
