//go:build linux && (amd64 || arm64)

package testtask

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Flags of /proc/PID/stat, field 9.
const (
	pfExiting = 0x4
	pfKthread = 0x200000
)

// A stat is what of /proc/PID/stat matters here.
type stat struct {
	comm  string
	state byte
	ppid  int
	flags uint64
	nice  int
}

// parseStat reads a stat line; a name may hold anything but its own end is the
// last parenthesis.
func parseStat(line []byte) (stat, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return stat{}, fmt.Errorf("testtask: no name in stat line %q", line)
	}
	s := stat{comm: string(line[open+1 : end])}
	f := strings.Fields(string(line[end+1:]))
	if len(f) < 17 || len(f[0]) != 1 {
		return stat{}, fmt.Errorf("testtask: stat line %q is short", line)
	}
	s.state = f[0][0]
	var err [3]error
	s.ppid, err[0] = strconv.Atoi(f[1])
	s.flags, err[1] = strconv.ParseUint(f[6], 10, 64)
	s.nice, err[2] = strconv.Atoi(f[16])
	return s, errors.Join(err[:]...)
}

func readStat(dir string) (stat, error) {
	b, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// readStack gives the function names of a thread's kernel stack, leaf first.
func readStack(dir string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "stack"))
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(b)) {
		_, f, ok := strings.Cut(line, "] ")
		if name, _, plus := strings.Cut(f, "+"); ok && plus {
			names = append(names, name)
		}
	}
	return names, nil
}

// readSyscall gives the system call a thread is in, or NoSyscall.
func readSyscall(dir string) (int, error) {
	b, err := os.ReadFile(filepath.Join(dir, "syscall"))
	if err != nil {
		return NoSyscall, err
	}
	nr, err := strconv.Atoi(strings.Fields(string(b) + " ")[0])
	if err != nil { // "running"
		return NoSyscall, nil
	}
	return nr, nil
}

// readTids gives the threads of a process, ascending.
func readTids(pid int) ([]int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	var tids []int
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, fmt.Errorf("testtask: /proc/%d/task/%s is no thread", pid, e.Name())
		}
		tids = append(tids, tid)
	}
	slices.Sort(tids)
	return tids, nil
}

// readInnerPid gives the pid in the innermost namespace.
func readInnerPid(pid int) (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "NSpid:"); ok {
			f := strings.Fields(v)
			return strconv.Atoi(f[len(f)-1])
		}
	}
	return 0, fmt.Errorf("testtask: no NSpid in /proc/%d/status", pid)
}
