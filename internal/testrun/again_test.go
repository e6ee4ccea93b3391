package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// thrice is a test alone that passed or failed so.
func thrice(pkg, test string, how ...string) (all []event) {
	for _, h := range how {
		all = append(all, ended(h, pkg, test)...)
	}
	if slices.Contains(how, "fail") {
		return append(all, failedPkg(pkg)...)
	}
	return append(all, closed("pass", pkg, "ok  \tm/"+pkg+"\t0.1s\n")...)
}

func TestSecondLook(t *testing.T) {
	steady := thrice("a", "TestX", "pass", "pass", "pass")
	alone := map[string][]event{"TestX": steady, "TestY": thrice("a", "TestY", "pass", "pass", "pass"), "TestZ": thrice("b", "TestZ", "pass", "pass", "pass"),
		"TestBad": thrice("a", "TestBad", "pass", "fail", "pass"), "TestSkips": thrice("a", "TestSkips", "pass", "skip", "pass"), "TestTwice": thrice("a", "TestTwice", "pass", "pass"),
		"TestShape": thrice("a", "TestShape", "pass", "pass", "pass"), "TestBusy": thrice("a", "TestBusy", "skip", "skip", "skip"),
		"TestAfter": append(ended("pass", "a", "TestAfter"), thrice("a", "TestAfter", "pass", "pass")[:6]...)}
	alone["TestAfter"] = append(alone["TestAfter"], closed("fail", "a", "PASS\n", "found a leak\n", "FAIL\tm/a\t0.1s\n")...)
	alone["TestParts"] = slices.Concat(ended("skip", "a", "TestParts/new"), steady[:0], thrice("a", "TestParts", "pass", "pass", "pass"))
	alone["TestBusyParts"] = slices.Concat(ended("skip", "b/c", "TestBusy/x"), thrice("b/c", "TestBusy", "pass", "pass", "pass"))
	fails := func(tests ...string) (all []event) {
		for _, n := range tests {
			all = append(all, ended("fail", "a", n)...)
		}
		return append(all, failedPkg("a")...)
	}
	const one = "-timeout=20m -short -count=3 -run=^TestX$ m/a"
	for name, tt := range map[string]struct {
		whole []event
		err   string   // "": none
		says  []string // each
		asked string   // the first second look; "": none, "any"
	}{
		"passes alone": {fails("TestX"), "", []string{"x_test.go:9: TestX said so", "unsteady: m/a TestX: failed in the whole run, passed 3 of 3 alone\n",
			"0 passed, 0 failed, 1 unsteady, 0 skipped"}, one},
		"two pass alone":                     {fails("TestX", "TestY"), "", []string{"unsteady: m/a TestX", "unsteady: m/a TestY", "0 failed, 2 unsteady"}, one},
		"of two packages":                    {append(fails("TestX"), append(ended("fail", "b", "TestZ"), failedPkg("b")...)...), "", []string{"unsteady: m/b TestZ", "0 failed, 2 unsteady"}, one},
		"a third":                            {fails("TestX", "TestY", "TestZ"), "3 tests failed, and no more than 2 may be unsteady: none is run again\nfailed: m/a TestX\nfailed: m/a TestY\nfailed: m/a TestZ", []string{"3 failed, 0 unsteady"}, ""},
		"fails alone":                        {fails("TestBad"), "m/a TestBad failed in the whole run, and passed 2 of 3 alone", []string{"1 failed, 0 unsteady"}, "any"},
		"one of two":                         {fails("TestX", "TestBad"), "m/a TestBad failed in the whole run, and passed 2 of 3 alone", []string{"unsteady: m/a TestX", "1 failed, 1 unsteady"}, one},
		"is skipped alone":                   {fails("TestSkips"), "m/a TestSkips failed in the whole run, and passed 2 of 3 alone", nil, "any"},
		"does not run thrice":                {fails("TestTwice"), "passed 2 of 3 alone", nil, "any"},
		"its package fails alone":            {fails("TestAfter"), "m/a TestAfter failed in the whole run, and passed 3 of 3 alone", []string{"1 failed, 0 unsteady"}, "any"},
		"does not run at all":                {fails("TestGone"), "passed 0 of 3 alone", nil, "any"},
		"is too busy alone":                  {fails("TestBusy"), "passed 0 of 3 alone", nil, "any"},
		"a subtest":                          {slices.Concat(ended("fail", "a", "TestX")[:2], ended("pass", "a", "TestX/u"), ended("fail", "a", "TestX/s"), fails("TestX")[2:]), "", []string{"x_test.go:9: TestX/s said so", "1 passed, 0 failed, 1 unsteady"}, one},
		"skips a part":                       {slices.Concat(ended("skip", "a", "TestX/s"), fails("TestX")), "m/a TestX/s was skipped and is not listed", []string{"1 unsteady, 1 skipped"}, one},
		"skips a part alone":                 {fails("TestParts"), "m/a TestParts/new was skipped and is not listed: TestParts/new said so", []string{"1 unsteady, 1 skipped"}, "any"},
		"listed as skipped, ran":             {fails("TestShape"), "", []string{"ran here, and is listed as skipped: a TestShape\n"}, "any"},
		"another that is listed, passes":     {slices.Concat(ended("pass", "a", "TestShape"), fails("TestX")), "", []string{"ran here, and is listed as skipped: a TestShape\n", "1 passed, 0 failed, 1 unsteady"}, one},
		"another that is listed, is skipped": {slices.Concat(ended("skip", "a", "TestShape"), fails("TestX")), "", []string{"skipped (shape): m/a TestShape: TestShape said so", "1 unsteady, 1 skipped"}, one},
	} {
		t.Run(name, func(t *testing.T) {
			m := &made{whole: tt.whole, alone: alone}
			out, err := held(t, m)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
			for _, says := range tt.says {
				if !strings.Contains(out, says) {
					t.Errorf("%s\nwant %q", out, says)
				}
			}
			if got := len(m.asked) > 0; got != (tt.asked != "") || got && tt.asked != "any" && strings.Join(m.asked[0], " ") != tt.asked {
				t.Errorf("run again: %v, want %s", m.asked, tt.asked)
			}
		})
	}
}

// What a test said comes whole and once for each time it failed, in its order, the parts
// that passed included.
func TestFailedOutputIsWhole(t *testing.T) {
	at := func(test, output string) event {
		return event{Action: "output", Package: "m/a", Test: test, Output: output}
	}
	runs := func(test string) event { return event{Action: "run", Package: "m/a", Test: test} }
	ends := func(how, test string) event { return event{Action: how, Package: "m/a", Test: test} }
	m := &made{whole: append([]event{runs("TestX"), at("TestX", "one "), runs("TestX/s"), at("TestX/s", "two "), at("TestX/u", "three "), at("TestX/s", "four "), ends("pass", "TestX/u"),
		ends("fail", "TestX/s"), at("TestX", "five\n"), ends("fail", "TestX")}, failedPkg("a")...), alone: map[string][]event{}}
	out, _ := held(t, m)
	if n := strings.Count(out, "one two three four five\n"); n != 2 { // at once, and with the second look
		t.Errorf("%d times in %s", n, out)
	}
	m.alone["TestX"] = slices.Concat(m.whole[:len(m.whole)-2], m.whole[:len(m.whole)-2], m.whole)
	if out, _ = held(t, m); strings.Count(out, "one two three four five\n") != 2+3 {
		t.Error(out)
	}
}

// What is no failure of tests alone has no second look, with whatever failed beside it.
func TestNoSecondLook(t *testing.T) {
	failed := ended("fail", "a", "TestX")
	verdict := []string{"FAIL\n", "FAIL\tm/a\t0.1s\n"}
	race := event{Action: "output", Package: "m/a", Test: "TestX", Output: "WARNING: DATA RACE\n"}
	for name, tt := range map[string]struct {
		whole []event
		says  string
	}{
		"a panic":                                {slices.Concat(failed, closed("fail", "a", verdict[1])), "x_test.go:9"},
		"os.Exit":                                {slices.Concat(failed, ended("fail", "a", "TestY")[:2], closed("fail", "a", verdict...)), "x_test.go:9: TestY said so"},
		"a time limit":                           {slices.Concat(failed, []event{{Action: "run", Package: "m/a", Test: "TestHangs"}, {Action: "output", Package: "m/a", Test: "TestHangs", Output: "panic: test timed out\n"}}, closed("fail", "a", verdict[1])), "panic: test timed out"},
		"a signal":                               {slices.Concat(failed, closed("fail", "a", verdict[0], "signal: killed\n", verdict[1])), "signal: killed"},
		"a data race":                            {slices.Concat(failed[:2], []event{race}, failed[2:], closed("fail", "a", verdict...)), "DATA RACE"},
		"what TestMain found":                    {slices.Concat(failed, closed("fail", "a", verdict[0], "found a leak\n", verdict[1])), "found a leak"},
		"what TestMain found of tests that pass": {closed("fail", "a", "PASS\n", "found a leak\n", verdict[1]), "found a leak"},
		"no test":                                {closed("fail", "a", verdict[1]), "FAIL\tm/a"},
		"no build":                               {append([]event{{ImportPath: "m/a", Action: "build-output", Output: "x.go:1: no\n"}}, closed("fail", "a", "FAIL\tm/a [build failed]\n")...), "x.go:1: no"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &made{whole: tt.whole, alone: map[string][]event{"TestX": thrice("a", "TestX", "pass", "pass", "pass")}}
			out, err := held(t, m)
			if err == nil || !strings.Contains(err.Error(), "m/a did not end by failed tests alone") || len(m.asked) > 0 || !strings.Contains(out, tt.says) {
				t.Errorf("%v, %v\n%s", err, m.asked, out)
			}
		})
	}
}

// The same by the go command: what it says of packages of every kind, and of one whose
// test fails once.
func TestGoSaysSo(t *testing.T) {
	testneed.Slow(t)
	dir := t.TempDir()
	for path, text := range map[string]string{
		"go.mod":           "module m\n",
		"once/x_test.go":   `func TestX(t *testing.T) { t.Run("s", func(t *testing.T) { if os.Mkdir("again", 0o700) == nil { t.Error("once") } }) }`,
		"always/x_test.go": `func TestX(t *testing.T) { if os.Getenv("HOME") != "?" { t.Error("always") } }`,
		"panics/x_test.go": `func TestX(t *testing.T) { t.Error("x") }; func TestY(t *testing.T) { if os.Getenv("HOME") != "?" { panic("y") } }`,
		"exits/x_test.go":  `func TestX(t *testing.T) { t.Error("x") }; func TestY(t *testing.T) { os.Exit(1) }`,
		"main/x_test.go":   `func TestX(t *testing.T) { t.Error("x") }; func TestMain(m *testing.M) { m.Run(); os.Stdout.WriteString("found a leak\n"); os.Exit(1) }`,
		"hangs/x_test.go":  `func TestX(t *testing.T) { t.Error("x") }; func TestY(t *testing.T) { if os.Getenv("HOME") != "?" { select {} } }`,
		"build/x_test.go":  `func TestX(t *testing.T) { os.No() }`,
		"list":             "busy at most 0\nunsteady at most 2\n",
	} {
		path = filepath.Join(dir, path)
		if strings.HasSuffix(path, ".go") {
			text = "package x\nimport (\"os\"; \"testing\")\n" + text + "\n"
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	var out strings.Builder
	err := check("list", []string{"-timeout=3s", "./..."}, goTest, &out)
	if err == nil {
		t.Fatal(out.String())
	}
	for _, pkg := range []string{"panics", "exits", "main", "hangs", "build"} {
		if !strings.Contains(err.Error(), "m/"+pkg+" did not end by failed tests alone") {
			t.Errorf("%s is looked at again, or not at all: %v\n%s", pkg, err, &out)
		}
	}
	if !strings.Contains(err.Error(), "m/always TestX failed in the whole run, and passed 0 of 3 alone") ||
		!strings.Contains(out.String(), "unsteady: m/once TestX: failed in the whole run, passed 3 of 3 alone\n") {
		t.Errorf("%v\n%s", err, &out)
	}
	if err := check("list", []string{"./nothing"}, goTest, &out); err == nil {
		t.Error("a package that is not there")
	}
	if err := check("list", []string{"-nonsense=1", "./once"}, goTest, &out); err == nil {
		t.Error("a flag that is none")
	}
}
