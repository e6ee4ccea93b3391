//go:build linux && (amd64 || arm64)

package testtask

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Schedules are what the threads of a process have, each once, sorted, as "policy/real-time
// priority" in the kernel's numbers; nil: it has ended.
func Schedules(pid int) (found []string) {
	list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, e := range list {
		tid, _ := strconv.Atoi(e.Name())
		a, err := unix.SchedGetAttr(tid, 0)
		if err != nil {
			continue // it has ended
		}
		if s := fmt.Sprintf("%d/%d", a.Policy, a.Priority); !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	slices.Sort(found)
	return found
}
