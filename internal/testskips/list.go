package main

import (
	"errors"
	"fmt"
	"io"
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
// test, reason. One line more says "busy at most N" in a run.
type list struct {
	entries  []entry
	mostBusy int
}

type entry struct{ kind, pkg, test, why string }

func parseList(text string) (*list, error) {
	l := &list{mostBusy: -1}
	for at, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if strings.HasPrefix(line, "busy at most ") && len(f) == 4 {
			n, err := strconv.Atoi(f[3])
			if err != nil || n < 0 {
				return nil, fmt.Errorf("line %d: %q is no number", at+1, f[3])
			}
			l.mostBusy = n
			continue
		}
		if len(f) < 4 || !slices.Contains([]string{shape, apart, busy}, f[0]) {
			return nil, fmt.Errorf("line %d: want shape, apart or busy, a package, a test and a reason: %q", at+1, line)
		}
		l.entries = append(l.entries, entry{f[0], f[1], f[2], strings.Join(f[3:], " ")})
	}
	if l.mostBusy < 0 {
		return nil, errors.New("no line says how many are busy at most")
	}
	return l, nil
}

// covers: an entry is for a test and its subtests.
func (e *entry) covers(n name) bool {
	_, pkg, _ := strings.Cut(n.pkg, "/")
	return pkg == e.pkg && (n.test == e.test || strings.HasPrefix(n.test, e.test+"/"))
}

// judge prints the skips, each with its reason, and says what is wrong with them.
func (l *list) judge(r *run, out io.Writer) error {
	var wrong []error
	if r.ended == 0 {
		wrong = append(wrong, errors.New("go test ran nothing"))
	}
	if r.failed > 0 {
		wrong = append(wrong, fmt.Errorf("%d failed", r.failed))
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
	fmt.Fprintf(out, "%d passed, %d skipped: %d for this machine's shape, %d that run apart, %d for a busy host\n",
		len(r.passed), len(r.skipped), count[shape], count[apart], count[busy])
	l.hint(r, out)
	return errors.Join(wrong...)
}

// hint names what is listed, and ran.
func (l *list) hint(r *run, out io.Writer) {
	for _, e := range l.entries {
		if e.kind == busy {
			continue
		}
		covers := func(s skip) bool { return e.covers(s.name) }
		if ran := r.passed[name{first(r, e.pkg), e.test}]; ran && !slices.ContainsFunc(r.skipped, covers) {
			fmt.Fprintf(out, "ran here, and is listed as skipped: %s %s\n", e.pkg, e.test)
		}
	}
}

// first is a package's whole name.
func first(r *run, pkg string) string {
	for n := range r.passed {
		if _, rest, _ := strings.Cut(n.pkg, "/"); rest == pkg {
			return n.pkg
		}
	}
	return ""
}
