package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// controlGroup makes a control group of a controller for the length of the test, in
// whichever version's hierarchy has it.
func controlGroup(t *testing.T, controller string) (dir string, unified bool) {
	t.Helper()
	needRoot(t)
	root := "/sys/fs/cgroup/" + controller
	if _, err := os.Stat(root + "/cgroup.procs"); err != nil {
		unified, root = true, unifiedRoot(t)
		if err := os.WriteFile(root+"/cgroup.subtree_control", []byte("+"+controller), 0); err != nil {
			needGroups(t, "controller %s: %v", controller, err)
		}
	}
	dir, err := os.MkdirTemp(root, "stackshot-test-")
	if err != nil {
		needGroups(t, "%v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir, unified
}

// unifiedRoot is where the second version's hierarchy is mounted, here if nowhere.
func unifiedRoot(t *testing.T) string {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(root + "/cgroup.controllers"); err == nil {
			return root
		}
	}
	root := t.TempDir()
	if err := unix.Mount("none", root, "cgroup2", 0, ""); err != nil {
		needGroups(t, "mount cgroup2: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(root, 0) })
	return root
}

func needGroups(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("STACKSHOT_REQUIRE_BPF") == "1" {
		t.Fatalf("no control group can be made: "+format, args...)
	}
	t.Skipf("no control group can be made: "+format, args...)
}

func set(t *testing.T, dir, name string, value int64) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, value), 0); err != nil {
		t.Fatal(err)
	}
}

// inGroup runs the command in control groups, from its first instruction on.
func inGroup(dirs ...string) invocation {
	return invocation{bend: func(c *exec.Cmd) {
		script := `for d; do [ "$d" = -- ] && break; echo 0 > "$d/cgroup.procs" || exit 99; shift; done; shift; exec "$@"`
		c.Path, c.Args = "/bin/sh", append(append(append([]string{"sh", "-c", script, "sh"}, dirs...), "--", program), c.Args[1:]...)
	}}
}

// refused is how often the kernel refused a process, or ended one, for the bound of
// a group.
func refused(t *testing.T, dir, file, line string) string {
	t.Helper()
	text := read(t, filepath.Join(dir, file))
	for l := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(l, line+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("%s has no %s: %s", file, line, text)
	return ""
}
