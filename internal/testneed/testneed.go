// Package testneed is how a test says what it needs beside Go, gcc and git: a
// program, or something else that a machine may lack.
//
// What is missing skips the test and is named, a program with the Debian package
// that has it. With STACKSHOT_REQUIRE_BPF=1 it fails the test instead: a machine
// that is meant to test everything cannot pass by lacking it.
package testneed

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// packages are Debian 12's names of what has a program. gcc alone makes 32-bit
// programs of no library, so gcc-multilib is not among them; busybox-static is of
// glibc, and what is of musl in these tests is built by musl-gcc.
var packages = map[string]string{
	"addr2line": "binutils", "nm": "binutils", "objcopy": "binutils", "readelf": "binutils", "strip": "binutils",
	"java": "openjdk-17-jdk-headless", "javac": "openjdk-17-jdk-headless", "jcmd": "openjdk-17-jdk-headless",
	"clang-19": "clang-19", "clang++-19": "clang-19", "llvm-addr2line-19": "llvm-19",
	"gcc": "gcc", "g++": "g++", "gdb": "gdb", "rustc": "rustc", "dot": "graphviz", "musl-gcc": "musl-tools",
	"python3": "python3", "node": "nodejs", "busybox": "busybox-static",
	"mount": "mount", "prlimit": "util-linux", "flock": "util-linux", "unshare": "util-linux",
	"lsfd": "util-linux-extra", "ss": "iproute2", "mkfs.ext4": "e2fsprogs", "xz": "xz-utils", "zstd": "zstd",
	"less": "less", "mandoc": "mandoc", "make": "make", "makedumpfile": "makedumpfile",
}

// base is what this project's promise takes for granted: Go, git, and what Debian
// calls essential.
var base = []string{"go", "git", "sh", "cat", "sleep", "true", "perl"}

// Packages are the Debian packages of all programs that tests ask for, sorted.
func Packages() []string {
	return slices.Compact(slices.Sorted(maps.Values(packages)))
}

// All says that nothing may be missing: STACKSHOT_REQUIRE_BPF is 1.
func All() bool { return os.Getenv("STACKSHOT_REQUIRE_BPF") == "1" }

// LongVar is 1 where tests take their long forms: make long sets it, and package testvm
// hands it on to its guests. Without it, all tests take some minutes.
const LongVar = "STACKSHOT_LONG"

// Length is how much a test does, be it rounds, sizes or time: short shows that the thing
// works and fails where it is broken, long finds what is rare.
func Length[T any](short, long T) T {
	if os.Getenv(LongVar) == "1" {
		return long
	}
	return short
}

// Slow says that a test takes more than about half a second on a quiet machine. go test
// -short leaves it out, and is done in a minute.
func Slow(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("takes more than half a second: left out by -short")
	}
}

// GuestVar is 1 in a guest of package testvm, which has no programs but the tests'
// own: nobody demands them there.
const GuestVar = "STACKSHOT_GUEST"

// Guest says that this is one: emulated, and many times slower.
func Guest() bool { return os.Getenv(GuestVar) == "1" }

// Program lets the test go on only where each program is in PATH.
func Program(tb testing.TB, programs ...string) {
	tb.Helper()
	switch not := Missing(programs...); {
	case len(not) == 0:
	case Guest():
		tb.Skipf("needs %s: a guest has none", named(not))
	default:
		Lacking(tb, "needs %s", named(not))
	}
}

// Root lets the test go on only as root.
func Root(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		Lacking(tb, "needs root")
	}
}

// Lacking ends the test: skipped, or failed where nothing may be missing.
func Lacking(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if All() {
		tb.Fatalf(format, args...)
	}
	tb.Skipf(format, args...)
}

// Hooks skips a test on a machine where nothing of SysRq and panic can be hooked (.ci/skips), and why
// is the reason. A guest's kernel has hooks: there the test fails.
func Hooks(tb testing.TB, why error) {
	tb.Helper()
	if Guest() {
		tb.Fatalf("no SysRq hook that records: %v", why)
	}
	tb.Skipf("needs a SysRq whose hook records (Linux 6.7, fentry or kprobes): %v", why)
}

// Missing gives those programs that are not in PATH.
func Missing(programs ...string) []string {
	var not []string
	for _, p := range programs {
		if _, known := packages[p]; !known && !slices.Contains(base, p) {
			panic("testneed: no package is known for " + p)
		}
		if _, err := exec.LookPath(p); err != nil {
			not = append(not, p)
		}
	}
	return not
}

// named is a list of programs, each with its package.
func named(programs []string) string {
	var s []string
	for _, p := range programs {
		s = append(s, fmt.Sprintf("%s (package %s)", p, cmp.Or(packages[p], p)))
	}
	return strings.Join(s, ", ")
}

// Have is [Program] for a witness without whom the test proves less and goes on:
// whether the program is there. Where nothing may be missing it fails the test.
func Have(tb testing.TB, program string) bool {
	tb.Helper()
	not := Missing(program)
	if len(not) > 0 && All() {
		tb.Fatalf("needs %s", named(not))
	}
	if len(not) > 0 {
		tb.Logf("there is no %s: not compared with it", named(not))
	}
	return len(not) == 0
}
