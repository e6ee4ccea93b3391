package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// world makes a machine of files.
func world(t *testing.T, files map[string]string) Machine {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Machine{Root: root}
}

const (
	loadavg  = "0.00 0.00 0.00 1/1000 4711\n"
	unified  = "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	versionA = "33 31 0:30 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n34 31 0:31 / /sys/fs/cgroup/mem\\040ory rw - cgroup cgroup rw,memory\n"
)

// The nearest bound is found, wherever it is: in a group, above it, of the kernel.
func TestPids(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		free  int64
		by    string
	}{
		"no bound": {map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": unified}, unbounded.Free, ""},
		"own group": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": unified, "proc/loadavg": loadavg,
			"sys/fs/cgroup/a/b/pids.max": "50\n", "sys/fs/cgroup/a/b/pids.current": "40\n",
			"sys/fs/cgroup/a/pids.max": "max\n", "sys/fs/cgroup/a/pids.current": "900\n",
		}, 10, "pids.max of /sys/fs/cgroup/a/b is 50"},
		"a group above, used up": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": unified,
			"sys/fs/cgroup/a/b/pids.max": "50\n", "sys/fs/cgroup/a/b/pids.current": "40\n",
			"sys/fs/cgroup/a/pids.max": "60\n", "sys/fs/cgroup/a/pids.current": "61\n",
		}, 0, "pids.max of /sys/fs/cgroup/a is 60"},
		"version 1": {map[string]string{
			"proc/self/cgroup": "9:name=systemd:/z\n8:pids:/x\n0::/\n", "proc/self/mountinfo": unified + versionA,
			"sys/fs/cgroup/pids/x/pids.max": "7\n", "sys/fs/cgroup/pids/x/pids.current": "2\n",
		}, 5, "pids.max of /sys/fs/cgroup/pids/x is 7"},
		"a container that sees its own group as the top": {map[string]string{
			"proc/self/cgroup": "0::/docker/abc/inner\n", "proc/self/mountinfo": strings.Replace(unified, " / ", " /docker/abc ", 1),
			"sys/fs/cgroup/pids.max": "12\n", "sys/fs/cgroup/pids.current": "3\n",
			"sys/fs/cgroup/inner/pids.max": "max\n", "sys/fs/cgroup/inner/pids.current": "3\n",
		}, 9, "pids.max of /sys/fs/cgroup is 12"},
		"a group that is not mounted here": {map[string]string{
			"proc/self/cgroup": "0::/../other\n", "proc/self/mountinfo": unified,
			"sys/fs/cgroup/pids.max": "12\n", "sys/fs/cgroup/pids.current": "3\n",
		}, 9, "pids.max of /sys/fs/cgroup is 12"},
		"threads-max": {map[string]string{
			"proc/loadavg": loadavg, "proc/sys/kernel/threads-max": "1020\n", "proc/sys/kernel/pid_max": "4194304\n",
		}, 20, "kernel.threads-max is 1020"},
		"pid_max": {map[string]string{
			"proc/loadavg": loadavg, "proc/sys/kernel/threads-max": "100000\n", "proc/sys/kernel/pid_max": "1305\n",
		}, 5, "kernel.pid_max is 1305"},
		"nothing can be read": {nil, unbounded.Free, ""},
		"nonsense": {map[string]string{
			"proc/self/cgroup": "what\n", "proc/self/mountinfo": "a b - c\n - \n1 2 3 4 5 - cgroup2\n", "proc/loadavg": "x",
			"proc/sys/kernel/pid_max": "-5",
		}, unbounded.Free, ""},
	} {
		r := world(t, c.files).Pids(64)
		if r.Free != c.free || c.by != "" && r.String() != c.by {
			t.Errorf("%s: %d free, %v; want %d, %s", name, r.Free, r, c.free, c.by)
		}
	}
}

// Cache of files is free; version 1 shows no bound as a large number.
func TestMemory(t *testing.T) {
	const meminfo = "MemTotal:  4096 kB\nMemFree: 1 kB\nMemAvailable:   2048 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		free  int64
		by    string
	}{
		"the machine": {map[string]string{"proc/meminfo": meminfo}, 2 << 20, "the machine's memory is 4194304"},
		"memory.max above": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": unified,
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/b/memory.high": "max\n", "sys/fs/cgroup/a/b/memory.current": "5\n",
			"sys/fs/cgroup/a/memory.max": "1000000\n", "sys/fs/cgroup/a/memory.current": "900000\n",
			"sys/fs/cgroup/a/memory.stat": "anon 1\nfile 700000\ninactive_file 400000\nactive_file 200000\n",
		}, 700000, "memory.max of /sys/fs/cgroup/a is 1000000"},
		"memory.high": {map[string]string{
			"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": unified,
			"sys/fs/cgroup/a/memory.max": "1000000\n", "sys/fs/cgroup/a/memory.high": "500000\n", "sys/fs/cgroup/a/memory.current": "600000\n",
		}, 0, "memory.high of /sys/fs/cgroup/a is 500000"},
		"version 1": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/x\n", "proc/self/mountinfo": versionA,
			"sys/fs/cgroup/mem ory/x/memory.limit_in_bytes": "1000000\n", "sys/fs/cgroup/mem ory/x/memory.usage_in_bytes": "500000\n",
			"sys/fs/cgroup/mem ory/x/memory.stat":         "inactive_file 1\ntotal_inactive_file 300000\ntotal_active_file 100000\n",
			"sys/fs/cgroup/mem ory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/mem ory/memory.usage_in_bytes": "5\n",
		}, 900000, "memory.limit_in_bytes of /sys/fs/cgroup/mem ory/x is 1000000"},
		"nothing can be read": {nil, unbounded.Free, ""},
	} {
		r := world(t, c.files).Memory()
		if r.Free != c.free || c.by != "" && r.String() != c.by {
			t.Errorf("%s: %d free, %v; want %d, %s", name, r.Free, r, c.free, c.by)
		}
	}
}

// This machine's own files are understood: there is a bound of both.
func TestHere(t *testing.T) {
	if _, err := os.Stat("/proc/loadavg"); err != nil {
		t.Skip(err)
	}
	for what, r := range map[string]Room{"pids": Machine{}.Pids(64), "memory": Machine{}.Memory()} {
		if r.Free <= 0 || r.Free >= r.Max || r.By == "" {
			t.Errorf("%s: %s", what, fmt.Sprintf("%+v", r))
		}
	}
	uid := os.Getuid()
	_, all := Machine{}.Threads()
	if n := (Machine{}).threadsOf(uid); n < 1 || n > all+1000 {
		t.Errorf("uid %d has %d threads, the machine %d", uid, n, all)
	}
}
