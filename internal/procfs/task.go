package procfs

import (
	"bytes"
	"slices"
	"strings"
)

// ParseOOMScoreAdj reads an oom_score_adj file, -1000 … 1000.
func ParseOOMScoreAdj(b []byte) (int32, error) {
	s := scanner{file: "oom_score_adj", rest: b}
	n := s.i32()
	if n < -1000 || n > 1000 || s.more() {
		s.fail(b)
	}
	if s.err != nil {
		return 0, s.err
	}
	return n, nil
}

// Cgroup is one line of /proc/PID/cgroup.
type Cgroup struct {
	Hierarchy   int    // 0: the unified one
	Controllers string // "cpu,cpuacct", "name=systemd"; "" for the unified one
	Path        string // from the root of the reader's cgroup namespace
}

// ParseCgroup reads a cgroup file. A path may hold colons, but not newlines.
func ParseCgroup(b []byte) ([]Cgroup, error) {
	var out []Cgroup
	for line := range bytes.Lines(b) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		id, rest, ok := bytes.Cut(line, []byte(":"))
		controllers, path, ok2 := bytes.Cut(rest, []byte(":"))
		n, ok3 := parseUint(id)
		if !ok || !ok2 || !ok3 || n > 1<<31-1 || len(path) == 0 {
			return nil, syntaxError("cgroup", "line", line)
		}
		out = append(out, Cgroup{int(n), string(controllers), string(path)})
	}
	return out, nil
}

// CgroupPath picks the line of the unified hierarchy. The id that BPF records
// (css_set.dfl_cgrp) is of that hierarchy too, so path and id name the same group. If no
// unified hierarchy was ever mounted, it has no line; then CgroupPath picks the first
// that is not the root among those of memory, cpu, pids and systemd; else the first
// line. The result is zero if there is no line.
func CgroupPath(lines []Cgroup) Cgroup {
	if i := slices.IndexFunc(lines, func(c Cgroup) bool { return c.Hierarchy == 0 }); i >= 0 {
		return lines[i]
	}
	for _, want := range []string{"memory", "cpu", "pids", "name=systemd"} {
		for _, line := range lines {
			if line.Path != "/" && slices.Contains(strings.Split(line.Controllers, ","), want) {
				return line
			}
		}
	}
	if len(lines) > 0 {
		return lines[0]
	}
	return Cgroup{}
}

// MemoryCgroup picks the line of the hierarchy that has the memory controller: one of the first
// version, if the controller is there, else the unified one. The result is zero if there is no such
// line.
func MemoryCgroup(lines []Cgroup) (c Cgroup, version int) {
	for _, line := range lines {
		if line.Hierarchy != 0 && slices.Contains(strings.Split(line.Controllers, ","), "memory") {
			return line, 1
		}
		if line.Hierarchy == 0 {
			c, version = line, 2
		}
	}
	return c, version
}

// FirstPidNS is the inode of the machine's first pid namespace
// (PROC_PID_INIT_INO of include/linux/proc_ns.h).
const FirstPidNS = 0xEFFFFFFC

// ParseNSLink reads a namespace link, "pid:[4026531836]".
func ParseNSLink(b []byte) (kind string, inode uint32, err error) {
	name, rest, ok := bytes.Cut(b, []byte(":["))
	digits, ok2 := bytes.CutSuffix(rest, []byte("]"))
	n, ok3 := parseUint(digits)
	if !ok || !ok2 || !ok3 || n > 1<<32-1 || len(name) == 0 {
		return "", 0, syntaxError("ns", "link", b)
	}
	return string(name), uint32(n), nil
}
