package testvm

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"stackshot/internal/testneed"
)

// A package's tests come into the table; a kernel that cannot be had leaves its
// column empty with the reason, unless it is required.
func TestMatrixOfAPackage(t *testing.T) {
	testneed.Guests(t)
	requireVM(t, "amd64", "6.12")
	cache, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	m := Matrix{Columns: []Column{{"amd64", "6.12", "", 1}, {"amd64", "4.19", "", 2}}, Packages: []string{"internal/testvm/wire"},
		Limit: 2 * time.Minute, Cache: cache, LogDir: t.TempDir(), Progress: io.Discard}
	b := builder(t)
	table, err := m.Run(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 2 || table.Bad() != 0 || len(table.Guests) != 1 || !strings.Contains(table.Absent[1], "4.19") {
		t.Errorf("%+v", table)
	}
	for _, r := range table.Rows {
		if r.Cells[0].Outcome != "PASS" || len(r.Cells) != 1 {
			t.Errorf("%s: %+v", r.Test, r.Cells)
		}
	}
	m.Columns, m.Cache = Quick, t.TempDir()
	if _, err := m.Run(t.Context(), b); !errors.Is(err, ErrNoKernel) {
		t.Errorf("without a required kernel: %v", err)
	}
}

// What ended the guest is in the table, and is what the next guest leaves out.
func TestVerdictsInTheTable(t *testing.T) {
	done := []TestResult{{Name: "TestA", Outcome: "PASS"}}
	for _, c := range []struct {
		r        Result
		row, say string
	}{
		{Result{Verdict: Passed, Tests: done}, "", ""},
		{Result{Verdict: Failed, Tests: []TestResult{{Name: "TestA", Outcome: "FAIL"}}}, "", ""},
		{Result{Verdict: Failed, Tests: done}, "(all)", "FAILED"},
		{Result{Verdict: Failed}, "(all)", "FAILED"},
		{Result{Verdict: Failed, Running: "TestB", Tests: done}, "TestB", "FAILED"},
		{Result{Verdict: Hung, Running: "TestB"}, "TestB", "HUNG"},
		{Result{Verdict: Panicked, Tests: done}, "(all)", "PANICKED"},
		{Result{Verdict: Lost}, "(all)", "LOST"},
	} {
		var table Table
		culprit := table.verdict(0, "p", &c.r)
		if culprit != c.r.Running {
			t.Errorf("%+v: goes on without %q", c.r, culprit)
		}
		if c.row == "" {
			if len(table.Rows) != 0 {
				t.Errorf("%+v: %+v", c.r, table.Rows[0])
			}
			continue
		}
		if len(table.Rows) != 1 || table.Rows[0].Test != c.row || table.Rows[0].Cells[0].Outcome != c.say || table.Bad() != 1 {
			t.Errorf("%+v: %+v, want %s in %s", c.r, table.Rows, c.say, c.row)
		}
	}
}

// Every column of the matrix is a machine that there is.
func TestColumns(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range append(All(), Quick...) {
		l, err := LayoutNamed(c.Layout, c.Arch)
		if err != nil || first(l.CPUs, c.CPUs) == 0 {
			t.Errorf("%v: %+v, %v", c, l, err)
		}
		seen[c.Arch+c.Track+c.Layout] = true
	}
	if !seen["arm646.12isolcpus"] {
		t.Error("no column of arm64 with a CPU that is not stopped")
	}
	for _, track := range Tracks {
		if !seen[track.Arch+track.Name] {
			t.Errorf("no column for %+v", track)
		}
	}
	for _, l := range Layouts {
		if !seen["amd64"+newest+l.Name] && !seen["arm646.12"+l.Name] {
			t.Errorf("no column for layout %s", l.Name)
		}
	}
}

func TestNoQEMU(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := emulatorOf("amd64"); !errors.Is(err, ErrNoQEMU) || !strings.Contains(err.Error(), "qemu-system-x86") {
		t.Errorf("%v", err)
	}
	if _, err := emulatorOf("riscv64"); err == nil || errors.Is(err, ErrNoQEMU) {
		t.Errorf("an architecture without an emulator: %v", err)
	}
}
