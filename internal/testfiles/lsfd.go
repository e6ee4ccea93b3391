//go:build linux

package testfiles

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// Descriptor is one row of lsfd.
type Descriptor struct {
	Pid, Fd int
	Type    string // FIFO, SOCK, REG, ...
	Mode    string // "rw-"
	Inode   uint64
	Dev     uint64 // of the file system: major<<32 | minor
	Name    string // "pipe:[4711]", "anon_inode:[eventfd]"
}

// Lsfd asks lsfd for the descriptors of processes.
func Lsfd(tb testing.TB, pids ...int) []Descriptor {
	tb.Helper()
	testneed.Program(tb, "lsfd")
	list := strings.Trim(fmt.Sprint(pids), "[]")
	out, err := exec.Command("lsfd", "-J", "-o", "PID,FD,TYPE,MODE,INODE,DEV,NAME", "-p", list).Output()
	if err != nil {
		tb.Fatalf("lsfd: %v", err)
	}
	rows, err := parseLsfd(out)
	if err != nil {
		tb.Fatalf("lsfd: %v", err)
	}
	return rows
}

// parseLsfd leaves out what is no descriptor: the program, its mappings, its namespaces.
func parseLsfd(out []byte) ([]Descriptor, error) {
	var answer struct {
		Lsfd []struct {
			Pid        int
			Fd         *int
			Type, Mode string
			Inode      uint64
			Dev, Name  string
		}
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return nil, err
	}
	var rows []Descriptor
	for _, r := range answer.Lsfd {
		if r.Fd == nil {
			continue
		}
		dev, err := device(r.Dev)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Descriptor{r.Pid, *r.Fd, r.Type, r.Mode, r.Inode, dev, r.Name})
	}
	return rows, nil
}

// device reads "major:minor".
func device(s string) (uint64, error) {
	var major, minor uint64
	if _, err := fmt.Sscanf(s, "%d:%d", &major, &minor); err != nil {
		return 0, fmt.Errorf("device %q: %w", s, err)
	}
	return major<<32 | minor, nil
}
