//go:build linux

package userlab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// threadStates gives the state letter of every thread of a process.
func threadStates(pid int) ([]byte, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	var states []byte
	for _, e := range entries {
		s, err := stateOf(fmt.Sprintf("/proc/%d/task/%s", pid, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // ended meanwhile
		}
		if err != nil {
			return nil, err
		}
		states = append(states, s)
	}
	return states, nil
}

// userTicks gives the time in user mode of each thread that runs, in ticks.
func userTicks(pid int) (map[int]uint64, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	ticks := map[int]uint64{}
	for _, e := range entries {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, e.Name()))
		if err != nil {
			continue // ended meanwhile
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(f) < 12 || f[0] != "R" {
			continue
		}
		tid, err := strconv.Atoi(e.Name())
		if err == nil {
			ticks[tid], err = strconv.ParseUint(f[11], 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("userlab: stat of thread %s: %w", e.Name(), err)
		}
	}
	return ticks, nil
}

// stateOf reads the letter behind the name, which may hold anything.
func stateOf(dir string) (byte, error) {
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return 0, err
	}
	i := bytes.LastIndexByte(b, ')')
	if i < 0 || i+2 >= len(b) {
		return 0, fmt.Errorf("userlab: stat line %q of %s", b, dir)
	}
	return b[i+2], nil
}

// family gives a process and all it has forked, ascending.
func family(pid int) ([]int, error) {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", all[i]))
		if err != nil {
			if i == 0 {
				return nil, err
			}
			continue
		}
		for _, t := range tasks {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", all[i], t.Name()))
			for _, f := range strings.Fields(string(b)) {
				if n, err := strconv.Atoi(f); err == nil {
					all = append(all, n)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// kernelStack gives the functions of a thread's kernel stack, leaf first.
func kernelStack(pid, tid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stack", pid, tid))
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(b)) {
		_, f, _ := strings.Cut(line, "] ")
		if name, _, plus := strings.Cut(f, "+"); plus {
			names = append(names, name)
		}
	}
	return names, nil
}
