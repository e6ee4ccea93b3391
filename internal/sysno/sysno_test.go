package sysno

import (
	"regexp"
	"testing"
)

// Numbers from the kernel's own tables, which no release may change.
func TestName(t *testing.T) {
	for _, c := range []struct {
		machine string
		nr      int64
		want    string
	}{
		{"x86_64", 0, "read"}, {"x86_64", 74, "fsync"}, {"x86_64", 202, "futex"},
		{"x86_64", 232, "epoll_wait"}, {"x86_64", 435, "clone3"}, {"x86_64", x32Bit | 1, "write"},
		{"aarch64", 63, "read"}, {"aarch64", 82, "fsync"}, {"aarch64", 98, "futex"}, {"aarch64", 22, "epoll_pwait"},
	} {
		if got, ok := Name(c.machine, c.nr); !ok || got != c.want {
			t.Errorf("Name(%q, %d) = %q, %v; want %q", c.machine, c.nr, got, ok, c.want)
		}
	}
}

func TestNameUnknown(t *testing.T) {
	for _, c := range []struct {
		machine string
		nr      int64
	}{{"riscv64", 63}, {"x86_64", -1}, {"x86_64", 400}, {"x86_64", 1 << 40}, {"aarch64", -1 << 63}, {"aarch64", 244}} {
		if got, ok := Name(c.machine, c.nr); ok || got != "" {
			t.Errorf("Name(%q, %d) = %q, %v; want none", c.machine, c.nr, got, ok)
		}
	}
	if got := Format("riscv64", 63); got != "syscall 63" {
		t.Errorf("Format = %q", got)
	}
}

// The tables are shown on terminals, so they must hold names and nothing else,
// each once.
func TestTablesHoldNames(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9_]+$`)
	for arch, table := range map[string][]string{"amd64": amd64Names[:], "arm64": arm64Names[:]} {
		seen := map[string]bool{}
		for nr, s := range table {
			if s == "" {
				continue
			}
			if !name.MatchString(s) || seen[s] {
				t.Errorf("%s %d: %q", arch, nr, s)
			}
			seen[s] = true
		}
		if len(seen) < 300 {
			t.Errorf("%s: %d names", arch, len(seen))
		}
	}
}
