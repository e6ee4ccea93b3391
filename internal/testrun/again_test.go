package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// twice is a test alone that passed or failed so.
func twice(pkg, test string, how ...string) (all []event) {
	for _, h := range how {
		all = append(all, ended(h, pkg, test)...)
	}
	if slices.Contains(how, "fail") {
		return append(all, failedPkg(pkg)...)
	}
	return append(all, closed("pass", pkg, "ok  \tm/"+pkg+"\t0.1s\n")...)
}

func TestSecondLook(t *testing.T) {
	steady := func(test string) []event { return twice("a", test, "pass", "pass") }
	alone := map[string][]event{"TestBad": twice("a", "TestBad", "pass", "fail"), "TestSkips": twice("a", "TestSkips", "pass", "skip"), "TestOnce": twice("a", "TestOnce", "pass")}
	for _, n := range []string{"TestX", "TestY", "TestZ", "TestKnown", "TestSmoke"} {
		alone[n] = steady(n)
	}
	alone["TestParts"] = append(ended("skip", "a", "TestParts/new"), steady("TestParts")...)
	alone["TestAfter"] = append(steady("TestAfter")[:6], closed("fail", "a", "PASS\n", "found a leak\n", "FAIL\tm/a\t0.1s\n")...)
	fails := func(tests ...string) (all []event) {
		all = ended("pass", "a", "TestOther")
		for _, n := range tests {
			all = append(all, ended("fail", "a", n)...)
		}
		return append(all, failedPkg("a")...)
	}
	subtest := slices.Concat(ended("pass", "a", "TestOther"), ended("fail", "a", "TestX")[:1], ended("pass", "a", "TestX/u"), ended("fail", "a", "TestX/s"), fails("TestX")[4:])
	for what, tt := range map[string]struct {
		tier  string
		whole []event
		err   string   // "": none
		says  []string // each
		asked string   // the first second look; "": none, "any"
	}{
		"passes alone":            {live, fails("TestX"), "", []string{"\nunsteady: a TestX ", " x_test.go:9: TestX said so\n", "1 passed, 0 failed"}, "-timeout=20m -short -count=2 -run=^TestX$ m/a"},
		"of tier lab":             {lab, fails("TestX"), "", []string{"\nunsteady: a TestX "}, "any"},
		"of tier unit":            {unit, fails("TestX"), "1 failed", []string{"unsteady: none\nFAILED unit: a TestX: x_test.go:9: TestX said so\n  again: go test -count=1 ./a -run '^TestX$'\n"}, ""},
		"smoke in unit":           {unit, fails("TestSmoke"), "", []string{"\nunsteady: a TestSmoke "}, "any"},
		"three":                   {live, fails("TestX", "TestY", "TestZ"), "", []string{"\nunsteady: a TestX", "\nunsteady: a TestY", "\nunsteady: a TestZ"}, "any"},
		"three and a known one":   {live, fails("TestX", "TestY", "TestKnown", "TestZ"), "", []string{"\nunsteady: a TestKnown", "\nunsteady: a TestZ"}, "any"},
		"a fourth":                {live, fails("TestX", "TestY", "TestZ", "TestOnce"), "4 failed", []string{"4 tests failed, and no more than 3 may be unsteady", "FAILED live: a TestOnce:"}, ""},
		"fails alone":             {live, fails("TestBad"), "1 failed", []string{"FAILED live: a TestBad: x_test.go:9: TestBad said so\n  again: STACKSHOT_REQUIRE_BPF=1 STACKSHOT_LIVE=1 go test -count=1 ./a -run '^TestBad$'\n"}, "any"},
		"one of two":              {live, fails("TestX", "TestBad"), "1 failed", []string{"\nunsteady: a TestX", "\nFAILED live: a TestBad"}, "any"},
		"is skipped alone":        {live, fails("TestSkips"), "1 failed", nil, "any"},
		"does not run twice":      {live, fails("TestOnce"), "1 failed", nil, "any"},
		"does not run at all":     {live, fails("TestGone"), "1 failed", nil, "any"},
		"its package fails alone": {live, fails("TestAfter"), "1 failed", nil, "any"},
		"a subtest":               {unit, subtest, "1 failed", []string{"FAILED unit: a TestX: x_test.go:9: TestX/s said so\n  again: go test -count=1 ./a -run '^TestX$'\n"}, ""},
		"skips a part alone":      {live, fails("TestParts"), "1 skipped", []string{"\nunsteady: a TestParts", "\nFAILED live: a TestParts/new: skipped"}, "any"},
	} {
		t.Run(what, func(t *testing.T) {
			m := &made{whole: tt.whole, alone: alone}
			if tt.tier == unit {
				m.tests = []test{{name{"a", "TestSmoke"}, live, true}}
			}
			out, err := held(t, tt.tier, m)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q\n%s", err, tt.err, out)
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

// What a test said comes whole, in its order, the parts that passed included.
func TestFailedOutputIsWhole(t *testing.T) {
	at := func(test, output string) event {
		return event{Action: "output", Package: "m/a", Test: test, Output: output}
	}
	runs := func(test string) event { return event{Action: "run", Package: "m/a", Test: test} }
	ends := func(how, test string) event { return event{Action: how, Package: "m/a", Test: test} }
	m := &made{whole: append([]event{runs("TestX"), at("TestX", "one "), runs("TestX/s"), at("TestX/s", "two "), at("TestX/u", "three "), at("TestX/s", "four "), ends("pass", "TestX/u"),
		ends("fail", "TestX/s"), at("TestX", "five\n"), ends("fail", "TestX")}, failedPkg("a")...)}
	out, _ := held(t, unit, m)
	if n := strings.Count(out, "one two three four five\n"); n != 1 {
		t.Errorf("%d times in %s", n, out)
	}
}

// What is no failure of tests alone has no second look, with whatever failed beside it.
func TestNoSecondLook(t *testing.T) {
	failed := ended("fail", "a", "TestX")
	verdict := []string{"FAIL\n", "FAIL\tm/a\t0.1s\n"}
	race := event{Action: "output", Package: "m/a", Test: "TestX", Output: "WARNING: DATA RACE\n"}
	hangs := []event{{Action: "run", Package: "m/a", Test: "TestHangs"}, {Action: "output", Package: "m/a", Test: "TestHangs", Output: "panic: test timed out\n"}}
	const anyhow = "did not end by failed tests alone"
	for name, tt := range map[string]struct {
		whole []event
		says  string // of the output
		why   string // in the line FAILED
	}{
		"a panic":                                {slices.Concat(failed, closed("fail", "a", verdict[1])), "x_test.go:9", anyhow},
		"os.Exit":                                {slices.Concat(failed, ended("fail", "a", "TestY")[:2], closed("fail", "a", verdict...)), "x_test.go:9: TestY said so", anyhow},
		"a time limit":                           {slices.Concat(failed, hangs, closed("fail", "a", verdict[1])), "panic: test timed out", "TestHangs: panic: test timed out"},
		"a signal":                               {slices.Concat(failed, closed("fail", "a", verdict[0], "signal: killed\n", verdict[1])), "signal: killed", "signal: killed"},
		"a data race":                            {slices.Concat(failed[:2], []event{race}, failed[2:], closed("fail", "a", verdict...)), "DATA RACE", anyhow},
		"what TestMain found":                    {slices.Concat(failed, closed("fail", "a", verdict[0], "found a leak\n", verdict[1])), "found a leak", anyhow},
		"what TestMain found of tests that pass": {closed("fail", "a", "PASS\n", "found a leak\n", verdict[1]), "found a leak", anyhow},
		"no test":                                {closed("fail", "a", verdict[1]), "FAIL\tm/a", anyhow},
		"no build":                               {append([]event{{ImportPath: "m/a [m/a.test]", Action: "build-output", Output: "# m/a\n"}, {ImportPath: "m/a [m/a.test]", Action: "build-output", Output: "x.go:1: no\n"}}, closed("fail", "a", "FAIL\tm/a [build failed]\n")...), "x.go:1: no", "x.go:1: no"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &made{whole: tt.whole, alone: map[string][]event{"TestX": twice("a", "TestX", "pass", "pass")}}
			out, err := held(t, live, m)
			if err == nil || len(m.asked) > 0 || !strings.Contains(out, tt.says) || !strings.Contains(out, "\nFAILED live: a: "+tt.why) {
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
		"hangs/x_test.go":  `func TestX(t *testing.T) {}; func TestY(t *testing.T) { if os.Getenv("HOME") != "?" { select {} } }`,
		"build/x_test.go":  `func TestX(t *testing.T) { os.No() }`,
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
	whole := func(args ...string) string {
		var out strings.Builder
		j := judge{tier: live, test: goTest(nil), known: []name{{"panics", "TestX"}, {"exits", "TestX"}, {"main", "TestX"}}}
		if err := j.whole(args, &out); err == nil {
			t.Errorf("%q: no error", args)
		}
		return out.String()
	}
	out := whole("./once", "./always", "./panics", "./exits", "./main", "./build") + whole("-timeout=1s", "./hangs")
	for _, want := range []string{
		"FAILED live: panics: TestY: panic: y",
		"FAILED live: exits: ",
		"FAILED live: main: ",
		"FAILED live: hangs: TestY: panic: test timed out after 1s",
		"FAILED live: build: build/x_test.go:3:31: undefined: os.No",
		"FAILED live: always TestX: x_test.go:3: always\n  again: STACKSHOT_REQUIRE_BPF=1 STACKSHOT_LIVE=1 go test -count=1 ./always -run '^TestX$'\n",
		"unsteady: once TestX - x_test.go:3: once\n",
	} {
		if !strings.Contains(out, "\n"+want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "FAILED live: once") {
		t.Errorf("a test that passed alone is named as failed:\n%s", out)
	}
	for _, args := range [][]string{{"./nothing"}, {"-nonsense=1", "./once"}} {
		j := judge{tier: live, test: goTest(nil)}
		if err := j.whole(args, &strings.Builder{}); err == nil {
			t.Errorf("%v", args)
		}
	}
}
