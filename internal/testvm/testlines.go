package testvm

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TestResult is the end of one test, as go test prints it.
type TestResult struct {
	Name    string
	Outcome string // PASS, FAIL, SKIP
	Took    time.Duration
	Why     string // what it logged last, without its place, if it did not pass
}

var (
	endLine = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+) \(([0-9.]+s)\)`)
	logLine = regexp.MustCompile(`^    +[a-z0-9_]+\.go:\d+: (.*)`)
	// How much of a BPF program this kernel's verifier went through.
	countLine = regexp.MustCompile(`^([a-z_0-9]+): ([0-9]+) instructions verified$`)
	// What stackshot doctor says, as its test logs it.
	doctorLine = regexp.MustCompile(`^doctor: (\{.*\})$`)
)

// tail cuts a test's output into lines, for the results of tests in it.
type tail struct{ part []byte }

func (t *tail) add(b []byte, r *Result) {
	t.part = append(t.part, b...)
	for {
		i := slices.Index(t.part, '\n')
		if i < 0 {
			break
		}
		r.line(string(t.part[:i]))
		t.part = t.part[i+1:]
	}
	if len(t.part) > 1<<20 { // no line of go test's is
		t.part = nil
	}
}

func (r *Result) line(s string) {
	if name, ok := strings.CutPrefix(s, "=== RUN   "); ok && !strings.Contains(name, "/") {
		r.Running, r.said = name, ""
	}
	if m := logLine.FindStringSubmatch(s); m != nil {
		r.said = m[1]
		r.count(m[1])
		r.doctor(m[1])
	}
	m := endLine.FindStringSubmatch(s)
	if m == nil {
		return
	}
	took, err := time.ParseDuration(m[3])
	if err != nil {
		return
	}
	end := TestResult{Name: m[2], Outcome: m[1], Took: took}
	if end.Outcome != "PASS" {
		end.Why = r.said
	}
	r.Tests = append(r.Tests, end)
	if r.Running == m[2] {
		r.Running = ""
	}
}

// count takes a program's verified instructions, the most of several loads.
func (r *Result) count(logged string) {
	m := countLine.FindStringSubmatch(logged)
	if m == nil {
		return
	}
	if n, err := strconv.Atoi(m[2]); err == nil {
		if r.Verified == nil {
			r.Verified = map[string]int{}
		}
		r.Verified[m[1]] = max(r.Verified[m[1]], n)
	}
}
