package cgroups

import (
	"slices"
	"strings"

	"stackshot/internal/mounts"
	"stackshot/internal/procfs"
)

// maxMountinfo is the size up to which mountinfo is read, in bytes.
const maxMountinfo = 16 << 20

// places are where the hierarchies with the memory controller are mounted here, by their version.
type places map[uint16][]*mounts.Mount

// findPlaces reads where the hierarchies are mounted. It leaves out mounts that others cover, and those
// behind a mount that may hang.
func findPlaces(proc procfs.FS) (places, error) {
	files := []procfs.File{{Name: "mountinfo", Max: maxMountinfo}}
	proc.Read("self", files)
	if err := files[0].Err; err != nil {
		return nil, err
	}
	return placesOf(files[0].Data), nil
}

func placesOf(mountinfo []byte) places {
	p, table := places{}, mounts.Parse(mountinfo)
	for _, m := range mounts.All(mountinfo) {
		var version uint16
		switch {
		case m.Type == "cgroup2":
			version = 2
		case m.Type == "cgroup" && slices.Contains(strings.Split(m.Options, ","), "memory"):
			version = 1
		default:
			continue
		}
		if way := table.Way(m.Point); len(way) > 0 && way[len(way)-1].ID == m.ID && !slices.ContainsFunc(way, func(m *mounts.Mount) bool { return m.Kind() != "" }) {
			p[version] = append(p[version], m)
		}
	}
	return p
}

// dir is the directory of a group; "": it is not below what is mounted here. Both the path of the group
// and the root of a mount are relative to the root of this process's cgroup namespace.
func (p places) dir(version uint16, path string) string {
	for _, m := range p[version] {
		if below, ok := belowRoot(m.Root, path); ok {
			return strings.TrimSuffix(m.Point, "/") + below
		}
	}
	return ""
}

// belowRoot is what path has behind root: "" or "/…".
func belowRoot(root, path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/"))
	if !ok || rest != "" && rest[0] != '/' || slices.Contains(strings.Split(rest, "/"), "..") {
		return "", false
	}
	return strings.TrimSuffix(rest, "/"), true
}

// parent is the path of the group above; false: there is none.
func parent(path string) (string, bool) {
	i := strings.LastIndexByte(path, '/')
	switch {
	case i < 0 || path == "/" || path[i+1:] == "..":
		return "", false
	case i == 0:
		return "/", true
	}
	return path[:i], true
}
