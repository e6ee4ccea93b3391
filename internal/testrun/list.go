package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Kinds of reasons for a skip.
const (
	shape = "shape" // this machine is another than the test wants
	apart = "apart" // another step of .ci/run, or another test, runs it
	busy  = "busy"  // the host took the CPUs away each time it was tried
)

// list is what may be skipped. A line each: kind, package without the module's name,
// test, reason. Two lines more say how many may be in a run: "busy at most N", and
// "unsteady at most N", tests that fail in the whole run and pass alone.
type list struct {
	entries                []entry
	mostBusy, mostUnsteady int
}

type entry struct{ kind, pkg, test, why string }

func parseList(text string) (*list, error) {
	l := &list{mostBusy: -1, mostUnsteady: -1}
	most := map[string]*int{"busy": &l.mostBusy, "unsteady": &l.mostUnsteady}
	for at, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if to := most[f[0]]; to != nil && len(f) == 4 && f[1] == "at" && f[2] == "most" {
			n, err := strconv.Atoi(f[3])
			if err != nil || n < 0 {
				return nil, fmt.Errorf("line %d: %q is no number", at+1, f[3])
			}
			*to = n
			continue
		}
		if len(f) < 4 || !slices.Contains([]string{shape, apart, busy}, f[0]) {
			return nil, fmt.Errorf("line %d: want shape, apart or busy, a package, a test and a reason: %q", at+1, line)
		}
		l.entries = append(l.entries, entry{f[0], f[1], f[2], strings.Join(f[3:], " ")})
	}
	for kind, n := range most {
		if *n < 0 {
			return nil, fmt.Errorf("no line says how many are %s at most", kind)
		}
	}
	return l, nil
}

// is: this very test.
func (e *entry) is(n name) bool {
	_, pkg, _ := strings.Cut(n.pkg, "/")
	return pkg == e.pkg && n.test == e.test
}

// covers: an entry is for a test and its subtests.
func (e *entry) covers(n name) bool { return e.is(n.top()) }

// judge prints the skips, each with its reason, and says what is wrong with them.
// What failed is secondLook's.
func (l *list) judge(r *run, out io.Writer) error {
	var wrong []error
	if r.ended == 0 {
		wrong = append(wrong, errors.New("go test ran nothing"))
	}
	count := map[string]int{}
	for _, s := range r.skipped {
		i := slices.IndexFunc(l.entries, func(e entry) bool { return e.covers(s.name) })
		if i < 0 {
			wrong = append(wrong, fmt.Errorf("%s %s was skipped and is not listed: %s", s.pkg, s.test, s.why))
			continue
		}
		kind := l.entries[i].kind
		count[kind]++
		fmt.Fprintf(out, "skipped (%s): %s %s: %s\n", kind, s.pkg, s.test, s.why)
	}
	if n := count[busy]; n > l.mostBusy {
		wrong = append(wrong, fmt.Errorf("the host was too busy for %d proofs, and may be for %d: run it again on a quieter one", n, l.mostBusy))
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d unsteady, %d skipped: %d for this machine's shape, %d that run apart, %d for a busy host\n",
		len(r.passed), len(r.failed)-len(r.unsteady), len(r.unsteady), len(r.skipped), count[shape], count[apart], count[busy])
	l.hint(r, out)
	return errors.Join(wrong...)
}

// hint names what is listed, and ran: what passed, in the whole run or alone.
func (l *list) hint(r *run, out io.Writer) {
	ran := append(slices.Collect(maps.Keys(r.passed)), r.unsteady...)
	for _, e := range l.entries {
		skipped := slices.ContainsFunc(r.skipped, func(s skip) bool { return e.covers(s.name) })
		if e.kind != busy && !skipped && slices.ContainsFunc(ran, e.is) {
			fmt.Fprintf(out, "ran here, and is listed as skipped: %s %s\n", e.pkg, e.test)
		}
	}
}
