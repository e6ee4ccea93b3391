package main

import (
	"fmt"
	"slices"
	"strings"
)

// Kinds of reasons for a skip.
const (
	shape = "shape" // this machine is another than the test wants
	apart = "apart" // another step of .ci/run, or another test, runs it
)

// A skip that is allowed. A line of .ci/skips: kind, package without the module's name,
// test, reason.
type allowed struct{ kind, pkg, test, why string }

func parseSkips(text string) ([]allowed, error) {
	var all []allowed
	err := fields(text, func(line int, w []string) error {
		if len(w) < 4 || !slices.Contains([]string{shape, apart}, w[0]) {
			return fmt.Errorf("want shape or apart, a package, a test and a reason: %q", w)
		}
		all = append(all, allowed{w[0], w[1], w[2], strings.Join(w[3:], " ")})
		return nil
	})
	return all, err
}

// mostListed is how many lines .ci/unsteady may have: more is no list, but a habit.
const mostListed = 10

// parseUnsteady gives the tests of .ci/unsteady. A line of it: package without the module's
// name, test, commit at which it was seen, what it said.
func parseUnsteady(text string) ([]name, error) {
	var all []name
	err := fields(text, func(line int, w []string) error {
		if len(w) < 4 {
			return fmt.Errorf("want a package, a test, a commit and a reason: %q", w)
		}
		if all = append(all, name{w[0], w[1]}); len(all) > mostListed {
			return fmt.Errorf("more than %d tests: mend one", mostListed)
		}
		return nil
	})
	return all, err
}

// short is a package without the module's name, as lists and commands have it.
func short(pkg string) string {
	_, rest, _ := strings.Cut(pkg, "/")
	return rest
}
