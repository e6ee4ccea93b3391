//go:build linux && (amd64 || arm64)

package hangscenes

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stackshot/internal/testtask"
)

// goneTime is how long the kernel may keep what nobody uses any more.
const goneTime = 10 * time.Second

// hierarchy is where a controller's control groups are: the first version's, or the second's
// that has the controller at its root. "": neither.
func hierarchy(controller string) (root string, second bool) {
	root = "/sys/fs/cgroup/" + controller
	if _, err := os.Stat(root + "/cgroup.procs"); err == nil {
		return root, false
	}
	root = "/sys/fs/cgroup"
	if os.WriteFile(root+"/cgroup.subtree_control", []byte("+"+controller), 0) != nil {
		return "", false
	}
	return root, true
}

// group is a control group of a scene's own.
type group struct {
	tb     testing.TB
	dir    string
	second bool // of the second version
}

// newGroup makes one, which goes when the processes that are started after this are gone.
func newGroup(tb testing.TB, controller, name string) group {
	tb.Helper()
	root, second := hierarchy(controller)
	dir, err := os.MkdirTemp(root, name+"-")
	if err != nil {
		tb.Fatalf("hangscenes: %v", err)
	}
	tb.Cleanup(func() {
		if err := testtask.WaitFor(goneTime, func() (bool, error) { return os.Remove(dir) == nil, nil }); err != nil {
			tb.Errorf("hangscenes: control group %s: %v", dir, err)
		}
	})
	return group{tb, dir, second}
}

// procs is the file that takes processes in.
func (g group) procs() string { return filepath.Join(g.dir, "cgroup.procs") }

// set writes the file of the group's version.
func (g group) set(first, second string, value any) {
	g.tb.Helper()
	file := first
	if g.second {
		file = second
	}
	if err := os.WriteFile(filepath.Join(g.dir, file), fmt.Append(nil, value), 0); err != nil {
		g.tb.Fatalf("hangscenes: %v", err)
	}
}
