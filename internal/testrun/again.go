package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"stackshot/internal/testneed"
)

// How often a test that failed must then pass alone, and how many tests may do so in a run
// without refusing the change, beside those that .ci/unsteady lists.
const (
	times        = 2
	mostUnsteady = 3
)

// judge holds a run of a tier against the lists.
type judge struct {
	tier  string
	tests []test // of all tiers
	skips []allowed
	known []name // of .ci/unsteady
	test  tester
}

// whole runs the tests, looks a second time at those that failed, and prints at the end what
// there is to say of them. The error says in how many ways the run was not good.
func (j *judge) whole(args []string, out io.Writer) error {
	r, err := j.test(out, args)
	if err != nil {
		return err
	}
	r.slowest(out)
	j.secondLook(r, args, out)
	unlisted, others := j.skipped(r, out)
	fmt.Fprintf(out, "\n%d passed, %d failed, %d skipped\n", len(r.passed), len(r.failed)+len(r.broken), len(r.skipped)-others)
	fmt.Fprintf(out, "%d tests of other tiers were left out\n", others)
	for _, n := range r.unsteady {
		fmt.Fprintf(out, "unsteady: %s %s %s %s\n", short(n.pkg), n.test, commit(), r.why(n))
	}
	if len(r.unsteady) == 0 {
		fmt.Fprintln(out, "unsteady: none")
	}
	for _, s := range unlisted {
		j.failed(out, s.name, "skipped, and "+skipsFile+" does not list it: "+s.why)
	}
	never := j.neverRan(r)
	for _, n := range never {
		j.failed(out, n, "never ran")
	}
	for _, pkg := range r.broken {
		j.failed(out, name{pkg: pkg}, r.why(name{pkg: pkg}))
	}
	for _, n := range r.failed {
		j.failed(out, n, r.why(n))
	}
	var wrong []error
	if n := len(r.failed) + len(r.broken); n > 0 {
		wrong = append(wrong, fmt.Errorf("%d failed", n))
	}
	if len(unlisted) > 0 {
		wrong = append(wrong, fmt.Errorf("%d skipped that %s does not list", len(unlisted), skipsFile))
	}
	if len(never) > 0 {
		wrong = append(wrong, fmt.Errorf("%d never ran", len(never)))
	}
	if len(r.passed)+len(r.unsteady) == 0 {
		wrong = append(wrong, errors.New("no test passed"))
	}
	return errors.Join(wrong...)
}

// failed says what failed, and how to run it again.
func (j *judge) failed(out io.Writer, n name, why string) {
	what, run := short(n.pkg), ""
	if n.test != "" {
		what, run = what+" "+n.test, " -run '^"+n.top().test+"$'"
	}
	fmt.Fprintf(out, "FAILED %s: %s: %s\n", j.tier, what, why)
	env := map[string]string{live: "STACKSHOT_REQUIRE_BPF=1 " + testneed.LiveVar + "=1 ", lab: "STACKSHOT_REQUIRE_BPF=1 " + testneed.LabVar + "=1 "}[j.tier]
	fmt.Fprintf(out, "  again: %sgo test -count=1 ./%s%s\n", env, short(n.pkg), run)
}

// secondLook runs each test that failed once more, alone, after the whole run, and takes
// those that pass from r.failed to r.unsteady; their skips come to r.skipped. There is none of
// tier unit, whose tests have one answer, none of a package that ended in another way than by its
// tests' failures, and none where so many failed that it is no accident.
func (j *judge) secondLook(r *run, args []string, out io.Writer) {
	unlisted := 0
	for _, n := range r.failed {
		if j.tierOf(n) != unit && !j.listed(n) {
			unlisted++
		}
	}
	if unlisted > mostUnsteady {
		fmt.Fprintf(out, "\n%d tests failed, and no more than %d may be unsteady: none is run again\n", unlisted, mostUnsteady)
		return
	}
	var stay []name
	for _, n := range r.failed {
		if j.tierOf(n) == unit || slices.Contains(r.broken, n.pkg) || !j.alone(r, n, args, out) {
			stay = append(stay, n)
		} else {
			r.unsteady = append(r.unsteady, n)
		}
	}
	r.failed = stay
}

// alone says whether a test passes each time when it is run alone.
func (j *judge) alone(r *run, n name, args []string, out io.Writer) bool {
	fmt.Fprintf(out, "\n%s %s failed in the whole run: once more, alone, %d times:\n", n.pkg, n.test, times)
	second, err := j.test(out, aloneArgs(n, args))
	if err != nil {
		fmt.Fprintln(out, err)
		return false
	}
	for _, s := range second.skipped {
		r.skip(s)
	}
	return second.passed[n] == times && len(second.failed) == 0 && len(second.broken) == 0
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

// tierOf is the tier that a test's source says: a run of tier unit has smoke tests, too, as root.
func (j *judge) tierOf(n name) string {
	for _, t := range j.tests {
		if t.name == (name{short(n.pkg), n.test}) {
			return t.tier
		}
	}
	return j.tier
}

func (j *judge) listed(n name) bool { return slices.Contains(j.known, name{short(n.pkg), n.test}) }

// neverRan gives the tests of the tier that are built here and have not begun: their package ended
// before them, or a list of theirs or of ours is wrong. Of a package that did not end by itself all is
// said.
func (j *judge) neverRan(r *run) (never []name) {
	began, broken := map[name]bool{}, map[string]bool{}
	for n := range r.began {
		began[name{short(n.pkg), n.test}] = true
	}
	for _, pkg := range r.broken {
		broken[short(pkg)] = true
	}
	for _, t := range j.tests {
		if t.tier == j.tier && t.here && !began[t.name] && !broken[t.pkg] {
			never = append(never, name{"./" + t.pkg, t.test})
		}
	}
	return never
}

// otherTier says whether a skip is for the tier of a test that is of another one than this run.
// A part of a test has no tier of its own.
func (j *judge) otherTier(s skip) bool {
	return s.ofTier() && j.tierOf(s.name) != j.tier
}

// skipped prints the skips that .ci/skips has, each with its kind, gives those that it has not, and
// counts those for another tier. A line is for a test and its subtests.
func (j *judge) skipped(r *run, out io.Writer) (unlisted []skip, others int) {
	for _, s := range r.skipped {
		if j.otherTier(s) {
			others++
			continue
		}
		top := s.top()
		i := slices.IndexFunc(j.skips, func(a allowed) bool { return a.pkg == short(top.pkg) && a.test == top.test })
		if i < 0 {
			unlisted = append(unlisted, s)
			continue
		}
		fmt.Fprintf(out, "skipped (%s): %s %s: %s\n", j.skips[i].kind, short(s.pkg), s.test, s.why)
	}
	return unlisted, others
}

// commit is that of the checkout, for a line of .ci/unsteady.
func commit() string {
	out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "-"
	}
	return strings.TrimSpace(string(out))
}
