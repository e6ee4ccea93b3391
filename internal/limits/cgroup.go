package limits

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stackshot/internal/mounts"
	"stackshot/internal/procfs"
)

// group is a directory of a control group that this process is in.
type group struct {
	dir     string // as this process sees it
	unified bool   // of the second version
}

// groups are this process's control groups that may bound a controller's resource, each before
// its parent, as far up as they are mounted here.
func (m Machine) groups(controller string) (out []group) {
	text, err := os.ReadFile(m.Root + "/proc/self/cgroup")
	if err != nil {
		return nil
	}
	lines, err := procfs.ParseCgroup(text)
	if err != nil {
		return nil
	}
	info, _ := os.ReadFile(m.Root + "/proc/self/mountinfo")
	all := mounts.All(info)
	for _, line := range lines {
		unified := line.Hierarchy == 0
		if !unified && !slices.Contains(strings.Split(line.Controllers, ","), controller) {
			continue
		}
		for _, mount := range all {
			if !shows(mount, unified, controller) {
				continue
			}
			path, err := filepath.Rel(mount.Root, line.Path)
			if err != nil || strings.HasPrefix(path, "..") {
				path = "." // another part of the hierarchy is mounted: we see only its top
			}
			for ; ; path = filepath.Dir(path) {
				out = append(out, group{filepath.Join(mount.Point, path), unified})
				if path == "." {
					break
				}
			}
			break
		}
	}
	return out
}

// shows tells whether a mount is of the unified hierarchy, or otherwise of the controller's.
func shows(m *mounts.Mount, unified bool, controller string) bool {
	if unified {
		return m.Type == "cgroup2"
	}
	return m.Type == "cgroup" && slices.Contains(strings.Split(m.Options, ","), controller)
}

// number reads a file that holds one number. False: it is not there, or says "max".
func (m Machine) number(dir, name string) (int64, bool) {
	text, err := os.ReadFile(filepath.Join(m.Root+dir, name))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	return int64(min(n, math.MaxInt64)), err == nil
}

// sum adds up some lines of a file of "name number" lines.
func (m Machine) sum(dir, name string, lines ...string) (total int64) {
	text, err := os.ReadFile(filepath.Join(m.Root+dir, name))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && slices.Contains(lines, f[0]) {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			total += n
		}
	}
	return total
}
