package testneed

import (
	"os"
	"path"
	"sync"
	"testing"
	"time"
)

// A test is of one of four tiers, by what can change its outcome.
//
//   - unit: nothing of the machine but files of its own. go test runs it everywhere.
//   - live: the real kernel, and processes that the test started. It waits for conditions and
//     compares no time with a bound, so load cannot change its outcome. It begins with [Live],
//     or with [Smoke].
//   - lab: everything else. It begins with [Lab], and runs alone on the machine.
//   - guests: boots guests, or runs in one. It begins with [Guests].
//
// Package testrun reads the tiers out of the sources.

// Variables that are 1 where tests of a tier are to run. A guest of package testvm runs all.
const (
	LiveVar = "STACKSHOT_LIVE"
	LabVar  = "STACKSHOT_LAB"
	VMVar   = "STACKSHOT_REQUIRE_VM"
)

// Reasons of [Lab].
const (
	Time      = "asserts how long something takes, or what is done in a time"
	Scheduler = "asserts who runs, or loads the machine: hogs, storms, hotplug"
	Memory    = "asserts the memory or the descriptors of a whole process"
	Machine   = "asserts something of the whole machine, or of what else runs there"
	Witness   = "asks witnesses that not every machine has: gdb, compilers, other programs"
)

// Live begins a test of tier live. Without STACKSHOT_LIVE=1 it is skipped.
func Live(tb testing.TB) {
	tb.Helper()
	if !Guest() && os.Getenv(LiveVar) != "1" {
		tb.Skip(TierSkip, "live: runs with "+LiveVar+"=1, as root")
	}
}

// Smoke begins a test of tier live that a plain go test runs too, where it is root's: a few, which
// show that captures work on this machine.
func Smoke(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		Live(tb)
	}
}

// Lab begins a test of tier lab, and says why it is one. Without STACKSHOT_LAB=1 it is skipped.
func Lab(tb testing.TB, reason string) {
	tb.Helper()
	if !Guest() && os.Getenv(LabVar) != "1" {
		tb.Skip(TierSkip, "lab: "+reason+": runs with "+LabVar+"=1, by make lab")
	}
	labs.Store(tb.Name(), true)
}

// Guests begins a test that boots guests, which are slow and keep each CPU busy, or that runs in one.
// Without STACKSHOT_REQUIRE_VM=1 it is skipped; with it, it fails where QEMU or a kernel is missing.
func Guests(tb testing.TB) {
	tb.Helper()
	if !Guest() && os.Getenv(VMVar) != "1" {
		tb.Skip(TierSkip, "guests: runs with "+VMVar+"=1, by make vm")
	}
	labs.Store(tb.Name(), true)
}

var labs sync.Map // names of tests that began with Lab or Guests

// Patience is how long a test waits for what others have: the machine, a CPU. It is no bound that is
// tested, only the end of a test that hangs.
const Patience = 10 * time.Minute

// InLab says that a test is of tier lab or guests, or a benchmark: it may assert times, so it chooses its own
// budgets. Tests of other tiers have budgets that load does not reach.
func InLab(tb testing.TB) bool {
	if _, bench := tb.(*testing.B); bench {
		return true
	}
	for name := tb.Name(); name != "."; name = path.Dir(name) { // of a part, the tests that it is a part of
		if _, lab := labs.Load(name); lab {
			return true
		}
	}
	return false
}

// OnlyLab fails a test of tier unit or live. What calls it brings load, or takes something away,
// that other tests on the machine would meet.
func OnlyLab(tb testing.TB, what string) {
	tb.Helper()
	if !InLab(tb) {
		tb.Fatalf("%s is for tests of tier lab (testneed.Lab)", what)
	}
}

// TierSkip begins what a test logs that is skipped for its tier alone.
const TierSkip = "tier"
