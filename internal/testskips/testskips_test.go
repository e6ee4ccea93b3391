package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const listed = `# what may be skipped
busy at most 1
shape   a      TestShape  wants another machine
apart   b/c    TestApart  its own step
busy    a      TestBusy   microseconds
busy    b/c    TestBusy   microseconds
`

func events(t *testing.T, all ...event) string {
	t.Helper()
	var s strings.Builder
	for _, e := range all {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		s.Write(append(b, '\n'))
	}
	return s.String()
}

func ended(how, pkg, test string) []event {
	pkg = "m/" + pkg
	return []event{{Action: "run", Package: pkg, Test: test}, {Action: "output", Package: pkg, Test: test, Output: "    x_test.go:9: " + test + " said so\n"},
		{Action: how, Package: pkg, Test: test}}
}

func TestSkipsAreHeldAgainstTheList(t *testing.T) {
	ok := []event{{Action: "output", Package: "m/a", Output: "ok  \tm/a\t0.1s\n"}, {Action: "pass", Package: "m/a"}}
	for name, tt := range map[string]struct {
		events []event
		err    string // "": none
		says   string
	}{
		"nothing ran":        {nil, "ran nothing", ""},
		"all pass":           {ended("pass", "a", "TestOther"), "", "1 passed, 0 skipped"},
		"listed":             {ended("skip", "a", "TestShape"), "", "skipped (shape): m/a TestShape: TestShape said so"},
		"its subtest":        {ended("skip", "b/c", "TestApart/one"), "", "skipped (apart): m/b/c TestApart/one"},
		"not listed":         {ended("skip", "a", "TestShapeToo"), "m/a TestShapeToo was skipped and is not listed: TestShapeToo said so", ""},
		"of another package": {ended("skip", "b/c", "TestShape"), "m/b/c TestShape was skipped and is not listed", ""},
		"one busy":           {ended("skip", "a", "TestBusy"), "", "1 for a busy host"},
		"two busy":           {append(ended("skip", "a", "TestBusy"), ended("skip", "b/c", "TestBusy/x")...), "too busy for 2 proofs, and may be for 1", ""},
		"failed":             {ended("fail", "a", "TestOther"), "1 failed", "x_test.go:9: TestOther said so"},
		"listed, and ran":    {ended("pass", "a", "TestShape"), "", "ran here, and is listed as skipped: a TestShape"},
		"cut off": {[]event{{Action: "output", Package: "m/b", Test: "TestHangs", Output: "panic: test timed out\n"}, {Action: "fail", Package: "m/b"}},
			"1 failed", "panic: test timed out"},
		"does not build": {[]event{{ImportPath: "m/b", Action: "build-output", Output: "x.go:1: no\n"}, {Action: "fail", Package: "m/b"}}, "1 failed", "x.go:1: no"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "skips")
			if err := os.WriteFile(file, []byte(listed), 0o600); err != nil {
				t.Fatal(err)
			}
			in := "the go command's own words\n"
			if tt.events != nil {
				in += events(t, append(tt.events, ok...)...)
			}
			var out strings.Builder
			err := check(file, strings.NewReader(in), &out)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
			if !strings.Contains(out.String(), tt.says) || !strings.HasPrefix(out.String(), "the go command's own words\n") {
				t.Errorf("%s\nwant %q", &out, tt.says)
			}
		})
	}
}

func TestBadLists(t *testing.T) {
	for _, text := range []string{"", "shape a TestX why\n", "busy at most many\n", "busy at most 1\nother a TestX why\n", "busy at most 1\nshape a TestX\n"} {
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
