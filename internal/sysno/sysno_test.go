package sysno

import (
	"regexp"
	"testing"
)

// Numbers from the kernel's own tables, which no release may change.
func TestName(t *testing.T) {
	for _, c := range []struct {
		machine string
		abi     ABI
		nr      int64
		want    string
	}{
		{"x86_64", Native, 0, "read"}, {"x86_64", Native, 74, "fsync"}, {"x86_64", Native, 202, "futex"},
		{"x86_64", Native, 232, "epoll_wait"}, {"x86_64", Native, 435, "clone3"}, {"x86_64", Native, x32Bit | 1, "write"},
		{"aarch64", Native, 63, "read"}, {"aarch64", Native, 82, "fsync"}, {"aarch64", Native, 98, "futex"}, {"aarch64", Native, 22, "epoll_pwait"},
		{"x86_64", Compat, 3, "read"}, {"x86_64", Compat, 29, "pause"}, {"x86_64", Compat, 240, "futex"}, {"x86_64", Compat, 407, "clock_nanosleep_time64"},
		{"aarch64", Compat, 3, "read"}, {"aarch64", Compat, 0, "restart_syscall"}, {"aarch64", Compat, 240, "futex"}, {"aarch64", Compat, 252, "epoll_wait"},
	} {
		if got, ok := Name(c.machine, c.abi, c.nr); !ok || got != c.want {
			t.Errorf("Name(%q, %d, %d) = %q, %v; want %q", c.machine, c.abi, c.nr, got, ok, c.want)
		}
	}
}

func TestNameUnknown(t *testing.T) {
	for _, c := range []struct {
		machine string
		abi     ABI
		nr      int64
	}{
		{"riscv64", Native, 63}, {"x86_64", Native, -1}, {"x86_64", Native, 400}, {"x86_64", Native, 1 << 40}, {"aarch64", Native, -1 << 63}, {"aarch64", Native, 244},
		{"x86_64", Unknown, 0}, {"aarch64", Unknown, 63}, {"riscv64", Compat, 3}, {"x86_64", Compat, x32Bit | 3}, {"aarch64", Compat, 7}, {"x86_64", 17, 0},
	} {
		if got, ok := Name(c.machine, c.abi, c.nr); ok || got != "" {
			t.Errorf("Name(%q, %d, %d) = %q, %v; want none", c.machine, c.abi, c.nr, got, ok)
		}
	}
	if got := Format("riscv64", Native, 63); got != "syscall 63" {
		t.Errorf("Format = %q", got)
	}
}

// The tables are shown on terminals, so they must hold names and nothing else,
// each once.
func TestTablesHoldNames(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9_]+$`)
	for arch, table := range map[string][]string{"amd64": amd64Names[:], "arm64": arm64Names[:], "386": i386Names[:], "arm": armNames[:]} {
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
