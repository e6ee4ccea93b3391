//go:build linux

package userlab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

func TestPagedStackStaysOut(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	s := PagedStack(t)
	time.Sleep(50 * time.Millisecond)
	if n, err := s.Present(); err != nil || n != 0 {
		t.Errorf("%d pages present (%v), want none", n, err)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", s.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	s.Stop() // or the first thread gives it up again at once
	if _, err := mem.ReadAt(make([]byte, 8), int64(s.SP)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Present(); err != nil || n == 0 {
		t.Errorf("%d pages present (%v) after a read of one: pagemap says nothing", n, err)
	}
}

// Both are seen: the stack mapped, and not.
func TestRemapStackComesAndGoes(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	s := RemapStack(t)
	seen := map[bool]bool{}
	err := testtask.WaitFor(endTime, func() (bool, error) {
		s.Stop()
		seen[mappedAt(t, s.Pid, s.SP) != ""] = true
		s.Continue()
		return len(seen) == 2, nil
	})
	if err != nil {
		t.Errorf("%v: seen %v", err, seen)
	}
}

func TestVvarStackIsInVvar(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	s := VvarStack(t)
	if line := mappedAt(t, s.Pid, s.SP); !strings.Contains(line, "[vvar") {
		t.Errorf("SP %#x is in %q", s.SP, line)
	}
}

func TestDeviceStackIsInADevice(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	s, err := DeviceStack(t)
	if errors.Is(err, os.ErrNotExist) {
		t.Log(err) // most machines; idleDevice has a test of its own
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if line := mappedAt(t, s.Pid, s.SP); !strings.Contains(line, "/resource") {
		t.Errorf("SP %#x is in %q", s.SP, line)
	}
}

func TestIdleDevice(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	dir := t.TempDir()
	write := func(name string, size int) {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("used/resource0", 8192)
	write("used/driver", 0)
	write("small/resource0", 64)
	if got, err := idleDevice(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%q, %v", got, err)
	}
	write("idle/resource2", 4096)
	if got, err := idleDevice(dir); err != nil || got != filepath.Join(dir, "idle/resource2") {
		t.Errorf("%q, %v", got, err)
	}
}

// mappedAt is the line of maps that has an address, or "".
func mappedAt(t *testing.T, pid int, addr uint64) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err == nil && addr >= from && addr < to {
			return line
		}
	}
	return ""
}
