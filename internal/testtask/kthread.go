//go:build linux && (amd64 || arm64)

package testtask

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

const kthreaddPid = 2

// findKernelThreads gives kthreadd and one more kernel thread, which neither
// comes and goes nor has much to do. In a container with a pid namespace of its
// own there are none: an error.
func findKernelThreads() ([]Child, error) {
	st, err := readStat("/proc/2")
	if err != nil || st.flags&pfKthread == 0 {
		return nil, fmt.Errorf("testtask: pid 2 is not kthreadd: name %q, flags %#x, %v", st.comm, st.flags, err)
	}
	first := kernelChild(kthreaddPid, "", st.comm)
	first.Want.Leader.Stack = [][]string{{"kthreadd"}, kthreadEnd}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("testtask: %w", err)
	}
	for _, name := range []string{"khungtaskd", "oom_reaper", "kdevtmpfs", "migration/0", ""} {
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			st, err := readStat("/proc/" + e.Name())
			if err == nil && st.ppid == kthreaddPid && (st.comm == name || name == "" && !strings.HasPrefix(st.comm, "kworker")) {
				return []Child{first, kernelChild(pid, "other", st.comm)}, nil
			}
		}
	}
	return nil, fmt.Errorf("testtask: kthreadd has no child")
}

func kernelChild(pid int, role, comm string) Child {
	w := ThreadWant{States: "SID", Syscall: NoSyscall, Stack: [][]string{kthreadEnd}}
	st, _ := readStat(fmt.Sprintf("/proc/%d", pid))
	return Child{Kind: KernelThread, Role: role, Pid: pid,
		Want: Want{Threads: 1, Leader: w, Comm: comm, Nice: st.nice, Kernel: true}}
}
