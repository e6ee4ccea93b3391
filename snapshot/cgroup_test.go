package snapshot

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// TestCgroupIsOfOneHierarchy: on a machine with hierarchies of both versions a task's
// path and the number of its group are of the same, the unified one.
func TestCgroupIsOfOneHierarchy(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	root := unifiedMount(t)
	if root == "" {
		t.Skip("no unified hierarchy is mounted")
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// In a group of its own only in the first version's hierarchy, if there is one,
	// and then in the unified one.
	name := fmt.Sprintf("stackshot-test-%d", os.Getpid())
	var groups []string
	if old, err := filepath.Glob("/sys/fs/cgroup/memory/cgroup.procs"); err == nil && len(old) > 0 {
		groups = append(groups, filepath.Join(filepath.Dir(old[0]), name))
	}
	groups = append(groups, filepath.Join(root, name))
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		for _, g := range groups {
			os.Remove(g)
		}
	})
	for _, g := range groups {
		if err := os.Mkdir(g, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(g+"/cgroup.procs", fmt.Append(nil, cmd.Process.Pid), 0); err != nil {
			t.Fatal(err)
		}
		_, path, _ := strings.Cut(slurp(t, fmt.Sprintf("/proc/%d/cgroup", cmd.Process.Pid)), "0::")
		checkCgroup(t, cmd.Process.Pid, root, strings.TrimSpace(path))
	}
}

func checkCgroup(t *testing.T, pid int, root, path string) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(root, path), &st); err != nil {
		t.Fatal(err)
	}
	for _, engineName := range userEngines() {
		s := session(t, Options{Engine: engineName})
		_, snap := s.mustTake(t)
		i := slices.IndexFunc(snap.Tasks, func(task *kcdata.Task) bool { return task.ID == uint64(pid) })
		if i < 0 {
			t.Fatalf("%s: the task is not there", engineName)
		}
		if task := snap.Tasks[i]; task.Cgroup != path || task.Linux.CgroupID != st.Ino {
			t.Errorf("%s: group %q, number %d; want %q, %d", engineName, task.Cgroup, task.Linux.CgroupID, path, st.Ino)
		}
	}
}
