//go:build linux

package userlab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/testtask"
)

// An OddStack is a process of two threads, the second asleep in a system call on
// a stack that is not ordinary memory.
type OddStack struct {
	*Process
	Tid        int    // of the second thread
	SP         uint64 // its stack pointer
	Start, End uint64 // of the mapping that the stack is; equal where only SP is known
}

// PagedStack has a stack whose pages are not in memory: a file of the disk,
// mapped shared, written back and given up by MADV_PAGEOUT, again and again, so
// that it needs no swap. Reading it by ptrace or /proc/PID/mem brings it back for
// half a second at most.
func PagedStack(tb testing.TB) *OddStack {
	tb.Helper()
	s := oddStack(tb, "paged", filepath.Join(onDisk(tb), "stack"))
	err := testtask.WaitFor(readyTime, func() (bool, error) {
		present, err := s.Present()
		return err == nil && present == 0, err
	})
	if err != nil {
		tb.Fatalf("userlab: the stack is not paged out: %v", err)
	}
	return s
}

// RemapStack has a stack that the first thread unmaps and maps anew all the
// time. At SP is a frame pointer of 0 and the address of paged_leaf, or zeros,
// or nothing.
func RemapStack(tb testing.TB) *OddStack {
	tb.Helper()
	return oddStack(tb, "remap")
}

// VvarStack has its stack pointer in the pages that the kernel shows beside the
// vDSO: mapped and readable, but not memory of the process (special entries).
func VvarStack(tb testing.TB) *OddStack {
	tb.Helper()
	return oddStack(tb, "vvar")
}

// DeviceStack has its stack pointer in the registers of a PCI device that no
// driver uses: mapped, never touched. errors.Is(err, os.ErrNotExist) when there
// is no such device.
func DeviceStack(tb testing.TB) (*OddStack, error) {
	tb.Helper()
	resource, err := idleDevice("/sys/bus/pci/devices")
	if err != nil {
		return nil, err
	}
	return oddStack(tb, "at", resource), nil
}

// idleDevice finds memory of a PCI device without a driver.
func idleDevice(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*", "resource[0-5]"))
	if err != nil {
		return "", err
	}
	for _, resource := range found {
		_, err := os.Lstat(filepath.Join(filepath.Dir(resource), "driver"))
		if st, statErr := os.Stat(resource); errors.Is(err, os.ErrNotExist) && statErr == nil && st.Size() >= 4096 {
			return resource, nil
		}
	}
	return "", fmt.Errorf("userlab: a PCI device without a driver among %d in %s: %w", len(found), dir, os.ErrNotExist)
}

func oddStack(tb testing.TB, how ...string) *OddStack {
	tb.Helper()
	bin := newBuilder(tb).program(stacksProgram)
	l := launch{name: "stack " + how[0], argv: append([]string{bin}, how...), threads: 2, any: true}
	s := &OddStack{Process: run(tb, l)}
	if err := s.locate(); err != nil {
		tb.Fatalf("userlab: %s: %v\n%s", l.name, err, s.Log())
	}
	return s
}

// locate waits until the second thread is in its system call.
func (s *OddStack) locate() error {
	if len(s.Says) != 2 {
		return fmt.Errorf("says %q, want two addresses", s.Says)
	}
	var err [2]error
	s.Start, err[0] = strconv.ParseUint(s.Says[0], 0, 64)
	s.End, err[1] = strconv.ParseUint(s.Says[1], 0, 64)
	if err := errors.Join(err[:]...); err != nil {
		return err
	}
	return testtask.WaitFor(readyTime, func() (bool, error) {
		tids, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.Pid))
		if err != nil || len(tids) != 2 {
			return false, err
		}
		for _, t := range tids {
			if n, _ := strconv.Atoi(t.Name()); n != s.Pid {
				s.Tid = n
			}
		}
		s.SP, err = stackPointer(s.Pid, s.Tid)
		return err == nil && s.SP >= s.Start && s.SP <= s.End && s.SP != 0, err
	})
}

// stackPointer is that of a thread in a system call, 0 of one that is not.
func stackPointer(pid, tid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b))
	if len(f) < 3 {
		return 0, nil // "running"
	}
	return strconv.ParseUint(f[len(f)-2], 0, 64)
}

// Present counts the pages from SP to the end of the stack that are in memory,
// by pagemap.
func (s *OddStack) Present() (int, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", s.Pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	page := uint64(os.Getpagesize())
	first := s.SP / page
	entries := make([]byte, 8*((s.End+page-1)/page-first))
	if _, err := f.ReadAt(entries, int64(8*first)); err != nil {
		return 0, fmt.Errorf("pagemap: %w", err)
	}
	n := 0
	for ; len(entries) > 0; entries = entries[8:] {
		n += int(binary.NativeEndian.Uint64(entries) >> 63)
	}
	return n, nil
}
