package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"stackshot/internal/testneed"
)

// event is a line of go test -json (go doc test2json).
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // s
}

// name is a test, or with an empty test the package.
type name struct{ pkg, test string }

// top is the test that this one is a subtest of, or the test itself.
func (n name) top() name {
	n.test, _, _ = strings.Cut(n.test, "/")
	return n
}

// run is what a run of go test came to.
type run struct {
	out      io.Writer
	running  map[name]bool     // tests, not subtests
	output   map[name][]string // of packages, and of tests with their subtests: until they end well
	began    map[name]bool     // all that has run, not subtests
	first    map[name]string   // what each test, or subtest, logged first, with its place
	reasons  map[name]string   // and what it logged last
	causes   map[name]string   // why a test, or with an empty test the package, failed
	races    map[string]bool   // packages with a data race
	passed   map[name]int      // tests and subtests: how often
	skipped  []skip            // each test and subtest once
	failed   []name            // tests, not subtests
	unsteady []name            // failed, then passed alone: secondLook
	broken   []string          // packages that failed otherwise than by failed tests alone
	took     map[name]float64  // s, of tests that passed, not of subtests: others ran beside them
}

type skip struct {
	name
	why string
}

// ofTier says whether the skip claims to be for the test's tier alone.
func (s skip) ofTier() bool { return strings.Contains(s.why, ": "+testneed.TierSkip+" ") }

func newRun(out io.Writer) *run {
	return &run{out: out, running: map[name]bool{}, began: map[name]bool{}, first: map[name]string{}, output: map[name][]string{}, reasons: map[name]string{}, causes: map[name]string{}, races: map[string]bool{}, passed: map[name]int{}, took: map[name]float64{}}
}

// read takes all events. What is none, the go command's own words, is printed.
func (r *run) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				fmt.Fprint(r.out, line)
			} else {
				r.take(e)
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// deadly is how the runtime, and the go command, tell the end of a test binary.
var deadly = regexp.MustCompile(`^(panic|fatal error|signal): `)

var place = regexp.MustCompile(`^\s+[a-z0-9_]+\.go:\d+: `)

func (r *run) take(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "run":
		if n == n.top() {
			r.running[n], r.began[n] = true, true
			delete(r.output, n) // of a time before, in which it failed
		}
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		if pkg, _, _ := strings.Cut(e.ImportPath, " "); !strings.HasPrefix(e.Output, "#") {
			r.cause(name{pkg: pkg}, e.Output)
		}
	case "output":
		r.output[n.top()] = append(r.output[n.top()], e.Output)
		if at := place.FindString(e.Output); at != "" {
			r.reasons[n] = strings.TrimSpace(e.Output)
			if r.first[n] == "" {
				r.first[n] = r.reasons[n]
			}
		}
		if deadly.MatchString(e.Output) {
			r.cause(n.top(), e.Output)
			r.cause(name{pkg: n.pkg}, strings.TrimPrefix(n.test+": "+e.Output, ": "))
		}
		if strings.Contains(e.Output, "WARNING: DATA RACE") {
			r.races[n.pkg] = true
		}
	case "pass", "skip", "fail":
		if n.test == "" {
			r.endPackage(n, e.Action)
		} else {
			r.endTest(n, e.Action)
			r.took[n.top()] = max(r.took[n.top()], e.Elapsed)
		}
	}
}

func (r *run) endTest(n name, how string) {
	delete(r.running, n) // a subtest is not in it
	switch how {
	case "pass":
		r.passed[n]++
	case "skip":
		r.skip(skip{n, r.reasons[n]})
	case "fail":
		r.cause(n.top(), r.logged(n))
		if n != n.top() {
			return // its test fails, too
		}
		if !slices.Contains(r.failed, n) { // -count
			r.failed = append(r.failed, n)
		}
		fmt.Fprint(r.out, strings.Join(r.output[n], ""))
		return
	}
	if n == n.top() {
		delete(r.output, n)
	}
}

// logged is what a test said first and last: go test tells no error from what is only logged.
func (r *run) logged(n name) string {
	if first, last := r.first[n], r.reasons[n]; first != last {
		return first + " ... " + last
	}
	return r.reasons[n]
}

// cause notes the first line that says why something failed.
func (r *run) cause(n name, line string) {
	if line = strings.TrimSpace(line); line != "" && r.causes[n] == "" {
		r.causes[n] = line
	}
}

// why is the line that says best why a test, or with an empty test the package, failed.
func (r *run) why(n name) string {
	if n.test == "" {
		return cmp.Or(r.causes[n], "did not end by failed tests alone (but by os.Exit, a time limit, a data race, what TestMain found): see above")
	}
	return cmp.Or(r.causes[n], "said nothing of it")
}

// skip notes a skipped test, or subtest, once.
func (r *run) skip(s skip) {
	if !slices.ContainsFunc(r.skipped, func(have skip) bool { return have.name == s.name }) {
		r.skipped = append(r.skipped, s)
	}
}

// endPackage prints the last line of a package that passed, and all that one has said
// that failed.
func (r *run) endPackage(n name, how string) {
	said := r.output[n]
	delete(r.output, n)
	if how != "fail" {
		if len(said) > 0 {
			fmt.Fprint(r.out, said[len(said)-1])
		}
		return
	}
	if r.cutOff(n.pkg) || !ownVerdict(said) || r.races[n.pkg] {
		r.broken = append(r.broken, n.pkg)
	}
	fmt.Fprint(r.out, strings.Join(said, ""))
}

// ownVerdict says whether a package that failed came to the end of all its tests, and
// some failed: package testing says FAIL then, and with the go command's line that is
// all. A panic, a time limit, os.Exit in a test and a build that failed have no such
// word; a signal and what TestMain found afterwards stand after it.
func ownVerdict(said []string) bool {
	last := len(said) - 1
	return last >= 1 && said[last-1] == "FAIL\n" && strings.HasPrefix(said[last], "FAIL\t")
}

// cutOff says whether tests of a package ran when it ended, and prints what they said.
func (r *run) cutOff(pkg string) (any bool) {
	for n := range r.running {
		if n.pkg == pkg {
			fmt.Fprint(r.out, strings.Join(r.output[n], ""))
			delete(r.output, n)
			delete(r.running, n)
			any = true
		}
	}
	return any
}
