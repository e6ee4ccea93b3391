package testvm

import (
	"fmt"
	"regexp"
	"time"
)

// Verdict is what became of a guest, in the order in which it is judged.
type Verdict string

const (
	Garbled  Verdict = "garbled"  // something else than frames came over the wire
	Passed   Verdict = "passed"   // the program ended with 0
	Failed   Verdict = "failed"   // the program ended with another code
	Panicked Verdict = "panicked" // the kernel did
	Hung     Verdict = "hung"     // the limit came first, or a long silence
	Lost     Verdict = "lost"     // the guest ended without an exit code
)

// Result is what came out of a guest.
type Result struct {
	Verdict  Verdict
	Why      string         // the kernel's, the wire's or the test's own words
	Code     int            // the program's exit code, -1 without one
	Release  string         // of the kernel, as it said; empty if the first process did not run
	Oops     string         // the kernel's first words of a fault, panics included
	Output   bool           // the program wrote something
	Tests    []TestResult   // top-level tests, in the order of their end
	Running  string         // the test that was begun and not ended
	said     string         // the last that this test logged
	Verified map[string]int // by BPF program: verified instructions, as tests log them
	Doctor   *Doctor        // nil: no test logged one
	Notes    []string       // of the first process: what it could not set up
	Files    []string       // written to OutDir
	Took     time.Duration  // from QEMU's start to its end
	Attempts int            // 2: the first one came to nothing
	LogDir   string
}

// Flaked says that the attempt says nothing about the program: it wrote nothing,
// or the guest's kernel faulted by itself. Emulation does that once in some 80
// boots.
func (r *Result) Flaked() bool {
	return r.Verdict != Passed && (!r.Output || r.Oops != "")
}

func (r *Result) String() string {
	s := fmt.Sprintf("%s: %s in %.1f s", first(r.Release, "no kernel"), r.Verdict, r.Took.Seconds())
	if r.Why != "" {
		s += ": " + r.Why
	}
	if r.Running != "" {
		s += fmt.Sprintf(" (in %s)", r.Running)
	}
	if r.Oops != "" && r.Verdict != Panicked {
		s += fmt.Sprintf("; the kernel faulted: %s", r.Oops)
	}
	for _, n := range r.Notes {
		s += "; set-up: " + n
	}
	if r.Attempts > 1 {
		s += fmt.Sprintf("; attempt %d", r.Attempts)
	}
	return s + "; logs in " + r.LogDir
}

var (
	panicLine = regexp.MustCompile(`Kernel panic - not syncing: .*`)
	oopsLine  = regexp.MustCompile(`BUG: .*|Oops[: ].*|Unable to handle kernel .*|general protection fault.*|[a-z0-9_]+: [0-9a-f]{4} \[#1\].*|Kernel panic - not syncing: .*`)
)

// overLimit is why a guest hung that was ended by Config.Limit.
const overLimit = "no end within the limit"

// judge fills Verdict, Why and Oops from what is known when the guest has ended;
// hung is why it was ended from outside, if it was.
func (r *Result) judge(console []string, hung string, wireErr, exitErr error) {
	panicked := ""
	for _, line := range console {
		if r.Oops == "" {
			r.Oops = oopsLine.FindString(line)
		}
		if panicked == "" {
			panicked = panicLine.FindString(line)
		}
	}
	switch {
	case wireErr != nil:
		r.Verdict, r.Why = Garbled, wireErr.Error()
	case r.Code == 0:
		r.Verdict, r.Running = Passed, ""
	case r.Code > 0:
		r.Verdict, r.Why = Failed, fmt.Sprintf("exit code %d", r.Code)
	case panicked != "":
		r.Verdict, r.Why = Panicked, panicked
	case hung != "":
		r.Verdict, r.Why = Hung, hung
	default:
		r.Verdict, r.Why = Lost, fmt.Sprintf("no exit code; QEMU: %v", exitErr)
	}
}
