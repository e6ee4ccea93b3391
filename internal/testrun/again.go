package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// times is how often a test that failed must pass alone.
const times = 3

// secondLook runs each test that failed once more, alone, after the whole run. A run of
// 40 packages at once is a load under which some tests of microseconds fail; a fault
// that the load does not make fails alone, too.
//
// A test that passes each time goes to r.unsteady, and its skips to r.skipped. There is
// no second look at a package that ended in another way than by its tests' failures, nor
// at any test where more than most failed: so many are no accident. The error names each
// failure that stands.
func secondLook(r *run, most int, args []string, test tester, out io.Writer) error {
	var wrong []error
	for _, pkg := range r.broken {
		wrong = append(wrong, fmt.Errorf("%s did not end by failed tests alone (but by a panic, a time limit, a data race, a build): it is not run again", pkg))
	}
	var again []name
	for _, n := range r.failed {
		if !slices.Contains(r.broken, n.pkg) && !slices.Contains(again, n) {
			again = append(again, n)
		}
	}
	if len(again) > most {
		wrong = append(wrong, fmt.Errorf("%d tests failed, and no more than %d may be unsteady: none is run again", len(again), most))
		for _, n := range again {
			wrong = append(wrong, fmt.Errorf("failed: %s %s", n.pkg, n.test))
		}
		return errors.Join(wrong...)
	}
	for _, n := range again {
		if err := r.alone(n, args, test, out); err != nil {
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}

// alone is the second look at one test.
func (r *run) alone(n name, args []string, test tester, out io.Writer) error {
	fmt.Fprintf(out, "\n%s %s failed in the whole run:\n%s", n.pkg, n.test, strings.Join(r.output[n], ""))
	fmt.Fprintf(out, "once more, alone, %d times:\n", times)
	second, err := test(out, aloneArgs(n, args))
	if err != nil {
		return fmt.Errorf("%s %s failed in the whole run, and alone: %w", n.pkg, n.test, err)
	}
	if passed := second.passed[n]; passed != times || len(second.failed) > 0 || len(second.broken) > 0 {
		return fmt.Errorf("%s %s failed in the whole run, and passed %d of %d alone", n.pkg, n.test, passed, times)
	}
	fmt.Fprintf(out, "unsteady: %s %s: failed in the whole run, passed %d of %d alone\n", n.pkg, n.test, times, times)
	r.unsteady = append(r.unsteady, n)
	for _, s := range second.skipped {
		r.skip(s)
	}
	return nil
}

// aloneArgs keeps the flags of the whole run. Of flags given twice the last one counts.
func aloneArgs(n name, args []string) []string {
	var out []string
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			out = append(out, a)
		}
	}
	return append(out, "-count="+fmt.Sprint(times), "-run=^"+n.test+"$", n.pkg)
}
