package testvm

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	garbled := errors.New("not a frame")
	panics := []string{"boot", "[ 1.0] Kernel panic - not syncing: Attempted to kill init! exitcode=0x0"}
	oops := []string{"[ 2.9] int3: 0000 [#1] PREEMPT SMP NOPTI", "more"}
	for _, c := range []struct {
		name     string
		code     int
		output   bool
		console  []string
		timedOut bool
		wire     error
		want     Verdict
		flaked   bool
	}{
		{"passed", 0, true, nil, false, nil, Passed, false},
		{"passed, then slow to power off", 0, true, nil, true, nil, Passed, false},
		{"passed though the kernel faulted", 0, true, oops, false, nil, Passed, false},
		{"failed", 2, true, nil, false, nil, Failed, false},
		{"failed beside a fault", 2, true, oops, false, nil, Failed, true},
		{"panicked", -1, true, panics, false, nil, Panicked, true},
		{"panicked and waited", -1, true, panics, true, nil, Panicked, true},
		{"hung in a test", -1, true, nil, true, nil, Hung, false},
		{"hung before a test", -1, false, nil, true, nil, Hung, true},
		{"lost", -1, true, nil, false, nil, Lost, false},
		{"garbled", -1, true, nil, true, garbled, Garbled, false},
		{"garbled after a pass", 0, true, nil, false, garbled, Garbled, false},
	} {
		r := Result{Code: c.code, Output: c.output}
		hung := ""
		if c.timedOut {
			hung = overLimit
		}
		r.judge(c.console, hung, c.wire, nil)
		if r.Verdict != c.want || r.Flaked() != c.flaked || (r.Oops != "") != (len(c.console) > 0) {
			t.Errorf("%s: %+v, flaked %v; want %s, %v", c.name, r, r.Flaked(), c.want, c.flaked)
		}
	}
}

const someOutput = `=== RUN   TestA
    a_test.go:5: hello
--- PASS: TestA (0.25s)
=== RUN   TestB
=== RUN   TestB/sub
    b_test.go:17: needs more | CPUs
    --- SKIP: TestB/sub (0.00s)
--- SKIP: TestB (1.00s)
=== RUN   TestC
    counts_test.go:41: trap: 70688 instructions verified
    trap_test.go:30: trap: 63109 instructions verified
not of go test: --- FAIL: TestC (9s)
`

// However the output is cut into pieces, the tests in it are the same.
func TestLinesOfTests(t *testing.T) {
	for size := 1; size < len(someOutput); size++ {
		var r Result
		var cut tail
		for s := someOutput; s != ""; s = s[min(size, len(s)):] {
			cut.add([]byte(s[:min(size, len(s))]), &r)
		}
		if len(r.Tests) != 2 || r.Running != "TestC" || len(r.Verified) != 1 || r.Verified["trap"] != 70688 ||
			r.Tests[0] != (TestResult{"TestA", "PASS", 250 * time.Millisecond, ""}) ||
			r.Tests[1] != (TestResult{"TestB", "SKIP", time.Second, "needs more | CPUs"}) {
			t.Fatalf("in pieces of %d: %+v, running %q", size, r.Tests, r.Running)
		}
	}
}

func TestMarkdown(t *testing.T) {
	table := Table{Columns: []string{"6.1 ×2", "6.12 ×2", "6.18 ×2"}, Absent: map[int]string{2: "no mirror has it"}, Verified: map[string]map[int]int{}}
	table.count(0, map[string]int{"sample": 301})
	table.count(1, map[string]int{"trap": 63109})
	table.count(1, map[string]int{"trap": 70688})
	table.row("p", "TestA").Cells[0] = Cell{"PASS", 1300 * time.Millisecond, ""}
	table.row("p", "TestA").Cells[1] = Cell{"HUNG", time.Minute, "no end"}
	table.row("p", "TestB").Cells[0] = Cell{"SKIP", 0, "a | b"}
	table.row("p", "TestB").Cells[1] = Cell{"SKIP", 0, "a | b"}
	var s strings.Builder
	table.Markdown(&s)
	want := "| test | 6.1 ×2 | 6.12 ×2 | 6.18 ×2 |\n|---|---|---|---|\n" +
		"| `p` TestA | 1.3 | **HUNG** 60.0 (1) | - |\n| `p` TestB | skip (2) | skip (2) | - |\n" +
		"\n1. no end\n\n2. a \\| b\n\n6.18 ×2 was not run: no mirror has it\n" +
		"\n| verified instructions | 6.1 ×2 | 6.12 ×2 | 6.18 ×2 |\n|---|---|---|---|\n" +
		"| sample | 301 | - | - |\n| trap | - | 70688 | - |\n"
	if s.String() != want || table.Bad() != 1 {
		t.Errorf("%d bad\n%s\nwant\n%s", table.Bad(), s.String(), want)
	}
}
