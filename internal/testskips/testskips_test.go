package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const listed = `# what may be skipped
busy at most 1
unsteady at most 2
shape   a      TestShape  wants another machine
apart   b/c    TestApart  its own step
busy    a      TestBusy   microseconds
busy    b/c    TestBusy   microseconds
`

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

// held is what check says of such runs.
func held(t *testing.T, m *made) (out string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "skips")
	if err := os.WriteFile(file, []byte(listed), 0o600); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	err = check(file, wholeArgs, m.test, &b)
	return b.String(), err
}

func TestSkipsAreHeldAgainstTheList(t *testing.T) {
	ok := closed("pass", "a", "ok  \tm/a\t0.1s\n")
	for name, tt := range map[string]struct {
		events []event
		err    string // "": none
		says   string
	}{
		"nothing ran":        {nil, "ran nothing", ""},
		"all pass":           {ended("pass", "a", "TestOther"), "", "1 passed, 0 failed, 0 unsteady, 0 skipped"},
		"listed":             {ended("skip", "a", "TestShape"), "", "skipped (shape): m/a TestShape: TestShape said so"},
		"its subtest":        {ended("skip", "b/c", "TestApart/one"), "", "skipped (apart): m/b/c TestApart/one: TestApart/one said so"},
		"not listed":         {ended("skip", "a", "TestShapeToo"), "m/a TestShapeToo was skipped and is not listed: TestShapeToo said so", ""},
		"of another package": {ended("skip", "b/c", "TestShape"), "m/b/c TestShape was skipped and is not listed", ""},
		"one busy":           {ended("skip", "a", "TestBusy"), "", "1 for a busy host"},
		"two busy":           {append(ended("skip", "a", "TestBusy"), ended("skip", "b/c", "TestBusy/x")...), "too busy for 2 proofs, and may be for 1", ""},
		"listed, and ran":    {ended("pass", "a", "TestShape"), "", "ran here, and is listed as skipped: a TestShape"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &made{whole: tt.events}
			if tt.events != nil {
				m.whole = append(tt.events, ok...)
			}
			out, err := held(t, m)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
			if !strings.Contains(out, tt.says) || !strings.HasPrefix(out, "the go command's own words\n") || len(m.asked) > 0 {
				t.Errorf("%s\nwant %q; run again: %v", out, tt.says, m.asked)
			}
		})
	}
}

func TestBadLists(t *testing.T) {
	const both = "busy at most 1\nunsteady at most 1\n"
	if _, err := parseList(both); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "busy at most 1\n", "unsteady at most 1\n", "busy at most 1\nunsteady at most -1\n", "busy at most many\nunsteady at most 1\n",
		both + "other a TestX why\n", both + "shape a TestX\n", both + "unsteady a TestX why\n"} {
		if l, err := parseList(text); err == nil {
			t.Errorf("%q: %+v", text, l)
		}
	}
}

// The project's own list names tests that there are, each once.
func TestTheListIsOfThisProject(t *testing.T) {
	text, err := os.ReadFile("../../.ci/skips")
	if err != nil {
		t.Fatal(err)
	}
	l, err := parseList(string(text))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range l.entries {
		if key := e.pkg + " " + e.test; seen[key] {
			t.Errorf("%s is listed twice", key)
		} else {
			seen[key] = true
		}
		found := false
		files, _ := filepath.Glob("../../" + e.pkg + "/*_test.go")
		for _, f := range files {
			src, err := os.ReadFile(f)
			found = found || err == nil && strings.Contains(string(src), "\nfunc "+e.test+"(")
		}
		if !found {
			t.Errorf("there is no test %s in %s", e.test, e.pkg)
		}
	}
}
