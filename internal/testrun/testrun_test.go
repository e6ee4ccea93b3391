package main

import (
	"encoding/json"
	"go/build"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// A test of made-up events: what it said, and how it ended.
func ended(how, pkg, test string) []event {
	pkg = "m/" + pkg
	return []event{{Action: "run", Package: pkg, Test: test}, {Action: "output", Package: pkg, Test: test, Output: "    x_test.go:9: " + test + " said so\n"},
		{Action: how, Package: pkg, Test: test}}
}

// The end of a package, and what it said there.
func closed(how, pkg string, said ...string) (all []event) {
	for _, s := range said {
		all = append(all, event{Action: "output", Package: "m/" + pkg, Output: s})
	}
	return append(all, event{Action: how, Package: "m/" + pkg})
}

// A package whose only fault is that tests failed.
func failedPkg(pkg string) []event { return closed("fail", pkg, "FAIL\n", "FAIL\tm/"+pkg+"\t0.1s\n") }

// made is a go test that gives made-up events: of the whole run, and of a test alone.
type made struct {
	tests []test // of the sources
	whole []event
	alone map[string][]event // by test
	asked [][]string         // the arguments of each second look
}

func (m *made) test(out io.Writer, args []string) (*run, error) {
	r := newRun(out)
	events := m.whole
	if !slices.Equal(args, wholeArgs) {
		m.asked = append(m.asked, args)
		at := slices.IndexFunc(args, func(s string) bool { return strings.HasPrefix(s, "-run=^") })
		events = m.alone[strings.Trim(strings.TrimPrefix(args[at], "-run="), "^$")]
	}
	var in strings.Builder
	in.WriteString("the go command's own words\n")
	for _, e := range events {
		b, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		in.Write(append(b, '\n'))
	}
	return r, r.read(strings.NewReader(in.String()))
}

var wholeArgs = []string{"-timeout=20m", "-short", "./...", "./more"}

// held is what a judge says of such runs.
func held(t *testing.T, tier string, m *made) (out string, err error) {
	t.Helper()
	skips, err := parseSkips("# what may be skipped\nshape   a      TestShape  wants another machine\napart   b/c    TestApart  its own step\n")
	if err != nil {
		t.Fatal(err)
	}
	known, err := parseUnsteady("# seen\na TestKnown 1234abc x_test.go:9: a reason\n")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	j := judge{tier: tier, tests: m.tests, skips: skips, known: known, test: m.test}
	err = j.whole(wholeArgs, &b)
	return b.String(), err
}

func TestSkipsAreHeldAgainstTheList(t *testing.T) {
	ok := append(ended("pass", "a", "TestOther"), closed("pass", "a", "ok  \tm/a\t0.1s\n")...)
	tier := func(test string) []event {
		e := ended("skip", "a", test)
		e[1].Output = "    x_test.go:9: " + testneed.TierSkip + " live: runs with STACKSHOT_LIVE=1\n"
		return e
	}
	sources := []test{{name{"a", "TestTier"}, lab, true}, {name{"a", "TestOther"}, live, true}, {name{"a", "TestArm"}, live, false}}
	for what, tt := range map[string]struct {
		events []event
		err    string // "": none
		says   string
	}{
		"all pass":           {nil, "", "1 passed, 0 failed, 0 skipped\n0 tests of other tiers were left out\nunsteady: none\n"},
		"listed":             {ended("skip", "a", "TestShape"), "", "skipped (shape): a TestShape: x_test.go:9: TestShape said so"},
		"its subtest":        {ended("skip", "b/c", "TestApart/one"), "", "skipped (apart): b/c TestApart/one: x_test.go:9: TestApart/one said so"},
		"of another tier":    {tier("TestTier"), "", "1 passed, 0 failed, 0 skipped\n1 tests of other tiers were left out\n"},
		"of its own tier":    {tier("TestOther2"), "1 skipped", "FAILED live: a TestOther2: skipped"},
		"a part for a tier":  {tier("TestTier/x"), "1 skipped", "FAILED live: a TestTier/x: skipped"},
		"not in the sources": {tier("TestTier2"), "1 skipped", "FAILED live: a TestTier2: skipped"},
		"not listed":         {ended("skip", "a", "TestShapeToo"), "1 skipped", "FAILED live: a TestShapeToo: skipped, and .ci/skips does not list it: x_test.go:9: TestShapeToo said so\n  again: STACKSHOT_REQUIRE_BPF=1 STACKSHOT_LIVE=1 go test -count=1 ./a -run '^TestShapeToo$'\n"},
		"of another package": {ended("skip", "b/c", "TestShape"), "1 skipped", "FAILED live: b/c TestShape: skipped"},
	} {
		t.Run(what, func(t *testing.T) {
			m := &made{tests: sources, whole: append(tt.events, ok...)}
			if what == "of its own tier" {
				m.tests = append(m.tests, test{name{"a", "TestOther2"}, live, true})
			}
			out, err := held(t, live, m)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
			if !strings.Contains(out, tt.says) || !strings.HasPrefix(out, "the go command's own words\n") || len(m.asked) > 0 {
				t.Errorf("%s\nwant %q; run again: %v", out, tt.says, m.asked)
			}
		})
	}
	for what, events := range map[string][]event{"nothing ran": nil, "only skips": append(tier("TestTier"), ok[3:]...)} {
		if _, err := held(t, live, &made{tests: sources[:1], whole: events}); err == nil || !strings.Contains(err.Error(), "no test passed") {
			t.Errorf("%s: %v", what, err)
		}
	}
	m := &made{tests: append(sources, test{name{"b", "TestGone"}, live, true}), whole: ok}
	if out, err := held(t, live, m); err == nil || !strings.Contains(out, "FAILED live: b TestGone: never ran\n") || strings.Count(out, "never ran") != 1 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestBadLists(t *testing.T) {
	for _, text := range []string{"other a TestX why\n", "shape a TestX\n", "TestX\n"} {
		if l, err := parseSkips(text); err == nil {
			t.Errorf("%q: %+v", text, l)
		}
	}
	line := "a TestX 1234abc why\n"
	if l, err := parseUnsteady(strings.Repeat(line, mostListed)); err != nil || len(l) != mostListed {
		t.Errorf("%v %v", l, err)
	}
	for _, text := range []string{"a TestX 1234abc\n", strings.Repeat(line, mostListed+1)} {
		if l, err := parseUnsteady(text); err == nil {
			t.Errorf("%q: %+v", text, l)
		}
	}
}

// The project's own lists name tests that there are, each once; what is unsteady is of tier
// live; and each test is built on a machine that .ci/run or a guest has.
func TestTheProjectsTests(t *testing.T) {
	all, err := tests("../..")
	if err != nil {
		t.Fatal(err)
	}
	tiers, count, names := map[name]string{}, map[string]int{}, map[string]bool{}
	for _, tt := range all {
		tiers[tt.name] = tt.tier
		names[tt.test] = true
		count[tt.tier]++
	}
	if count[unit] < 400 || count[live] < 200 || count[lab] < 100 {
		t.Errorf("tests of each tier: %v", count)
	}
	for _, file := range []string{".ci/run", "Makefile"} { // go test is content with a -run that matches nothing
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\^(Test[A-Za-z0-9]+)\$`).FindAllStringSubmatch(string(text), -1) {
			if !names[m[1]] {
				t.Errorf("%s runs %s, which does not exist", file, m[1])
			}
		}
	}
	// Step vm runs the tests of testvm, and others by name; what these run in guests they name.
	run, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range all {
		short := regexp.MustCompile(`\b(Test)?` + strings.TrimPrefix(tt.test, "Test") + `\b`)
		if tt.tier == guests && tt.pkg != "internal/testvm" && !short.Match(run) && !mentioned(t, "../..", tt.test) {
			t.Errorf("nobody runs %v: step vm of .ci/run does not name it, and no other test", tt.name)
		}
	}
	t.Chdir("../..")
	skips, err := readList(skipsFile, parseSkips)
	if err != nil {
		t.Fatal(err)
	}
	known, err := readList(unsteadyFile, parseUnsteady)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[name]bool{}
	for _, s := range skips {
		n := name{s.pkg, s.test}
		if tiers[n] == "" || seen[n] {
			t.Errorf("%s: there is no test %v, or it is listed twice", skipsFile, n)
		}
		seen[n] = true
	}
	for _, n := range known {
		if tiers[n] != live {
			t.Errorf("%s: %v is no test of tier live", unsteadyFile, n)
		}
	}
}

func TestTierOf(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"a/x_test.go": `func TestUnit(t *testing.T) { t.Log() }
			func TestLive(t *testing.T) { testneed.Live(t) }
			func TestLab(t *testing.T) { testneed.Lab(t, testneed.Time); t.Log() }
			func TestLate(t *testing.T) { t.Log(); testneed.Lab(t, testneed.Time) }
			func TestMain(m *testing.M) { testneed.Live(nil) }
			func helper(t *testing.T) { testneed.Live(t) }`,
		"b/c/x_test.go": `func TestSmoke(t *testing.T) { testneed.Smoke(t) }
			func FuzzLive(f *testing.F) { testneed.Live(f) }`,
		"b/x.go":               `func TestNone(t *testing.T) { testneed.Live(t) }`,
		"b/testdata/x_test.go": `func TestNone(t *testing.T) { testneed.Live(t) }`,
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("package x\n"+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := tests(dir)
	if err != nil || len(all) != 6 {
		t.Fatal(all, err)
	}
	for tier, want := range map[string]string{
		unit: "./...",
		live: "STACKSHOT_LIVE=1 -count=1 -run=^(FuzzLive|TestLive|TestSmoke)$ ./b/c ./a",
		lab:  "STACKSHOT_LAB=1 -count=1 -p=1 -run=^(TestLab)$ ./a",
	} {
		args, env, err := tierArgs(all, tier)
		if got := strings.Join(append(env, args...), " "); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", tier, got, err, want)
		}
	}
	if _, _, err := tierArgs(all, "other"); err == nil {
		t.Error("a tier that is none")
	}
	if _, _, err := tierArgs(all[:1], lab); err == nil {
		t.Error("a tier without tests")
	}
}

// A test file that no build takes would never run, and nobody would know.
func TestEachTestIsBuilt(t *testing.T) {
	n := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") {
			return err
		}
		n++
		for _, arch := range []string{"amd64", "arm64"} {
			c := build.Default
			c.GOOS, c.GOARCH, c.BuildTags = "linux", arch, []string{"race"} // make race
			if ok, err := c.MatchFile(filepath.Dir(path), d.Name()); ok || err != nil {
				return err
			}
		}
		t.Errorf("%s is built neither for linux/amd64 nor for linux/arm64", path)
		return nil
	})
	if err != nil || n < 300 {
		t.Errorf("%d files: %v", n, err)
	}
}

// mentioned says whether a test file has the name of a test in a string.
func mentioned(t *testing.T, root, test string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || found || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		found = regexp.MustCompile(`"\^?` + test + `\$?"`).Match(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
