package main

import (
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stackshot/internal/licenses"
	"stackshot/internal/testneed"
)

// A value that cannot be used: exit code 2, before anything is captured, and
// the message names option and value.
func TestUsage(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	out := filepath.Join(t.TempDir(), "x")
	for _, c := range []struct {
		args  []string
		words []string
	}{
		{[]string{"tkae"}, []string{`"tkae" is neither a command nor a file: did you mean take?`}},
		{[]string{"help", "whre"}, []string{`"whre" is neither a command nor a topic: did you mean where?`}},
		{[]string{"help", "take", "hang"}, []string{`"hang" is an argument too many: stackshot help [COMMAND]`}},
		{[]string{"--newest", "."}, []string{"unknown flag: --newest: it is of 'stackshot hang', 'stackshot latency', 'stackshot report'"}},
		{[]string{"-p", "7"}, []string{"in -p: did you mean --pid?"}},
		{[]string{"report", "--i", "/dev/null"}, []string{"unknown flag: --i: did you mean --idle?"}},
		{[]string{"take", "--dir", "x"}, []string{"unknown flag: --dir\n"}},
		{[]string{"--nonsense"}, []string{"--nonsense"}},
		{[]string{"--pid", "x"}, []string{`--pid "x": want a whole number`}},
		{[]string{"take", "file"}, []string{`"file" is an argument too many: stackshot take`}},
		{[]string{"take", "--quite"}, []string{"did you mean --quiet?"}},
		{[]string{"take", "--nonsense"}, []string{"--nonsense"}},
		{[]string{"take", "-o"}, []string{"--output: a value is missing"}},
		{[]string{"take", "-o", ""}, []string{"--output"}},
		{[]string{"take", "--engine", "warp"}, []string{"--engine", "warp"}},
		{[]string{"take", "--pid", "x7"}, []string{`--pid "x7": want a whole number`}},
		{[]string{"take", "--pid", "0"}, []string{"--pid", "0"}},
		{[]string{"take", "--pid", "99999999999999999999"}, []string{`--pid "99999999999999999999": out of range`}},
		{[]string{"take", "--cpus", "x"}, []string{"--cpus", "x"}},
		{[]string{"take", "--cpus", "3-1"}, []string{"--cpus", "3-1"}},
		{[]string{"take", "--cpus", "60999"}, []string{"--cpus", "60999"}},
		{[]string{"take", "--cpus="}, []string{"--cpus"}},
		{[]string{"take", "--cpu-class", "0=Q"}, []string{"0=Q"}},
		{[]string{"take", "--cpu-class", "60999=P"}, []string{"--cpu-class", "60999"}},
		{[]string{"take", "--buffer", "x"}, []string{`--buffer "x": want a positive number of bytes`}},
		{[]string{"take", "--buffer", "0"}, []string{"--buffer", "0"}},
		{[]string{"take", "--buffer", "1"}, []string{"--buffer 1", "minimum"}},
		{[]string{"take", "--buffer", "8000000G"}, []string{"--buffer", "maximum"}},
		{[]string{"take", "--max-pause", "soon"}, []string{`--max-pause "soon": want a time, as in 250ms`}},
		{[]string{"take", "--max-pause", "0"}, []string{"--max-pause", "0s"}},
		{[]string{"take", "--max-pause", "2h"}, []string{"--max-pause", "2h0m0s"}},
		{[]string{"take", "--arrival-budget", "0"}, []string{"--arrival-budget", "0s"}},
		{[]string{"take", "--arrival-budget", "11s"}, []string{"--arrival-budget", "11s"}},
		{[]string{"take", "--compress", "lz4"}, []string{"--compress", "lz4"}},
		{[]string{"take", "--write-timeout", "0"}, []string{"--write-timeout", "0s"}},
		{[]string{"take", "--write-timeout", "-3s"}, []string{"--write-timeout", "-3s"}},
		{[]string{"take", "--lock-wait", "0"}, []string{"--lock-wait", "0s"}},
		{[]string{"take", "--quiet=maybe"}, []string{`--quiet "maybe": want true or false`}},
		{[]string{"take", "--json", "-o", "-"}, []string{"--json", "-o -"}},
		{[]string{"take", "--count", "-1"}, []string{"--count", "-1"}},
		{[]string{"take", "--count", "many"}, []string{`--count "many": want a whole number`}},
		{[]string{"take", "--count", "2", "-o", "-"}, []string{"--count", "-o -"}},
		{[]string{"take", "--count", "0", "-o", "-"}, []string{"--count", "-o -"}},
		{[]string{"take", "--interval", "1s"}, []string{"--interval", "--count"}},
		{[]string{"take", "--count", "2", "--interval", "0"}, []string{"--interval", "0s"}},
		{[]string{"take", "--count", "2", "--interval", "-1s"}, []string{"--interval", "-1s"}},
		{[]string{"report", "a", "b"}, []string{"arg"}},
		{[]string{"report", "a", "--newest", "."}, []string{"--newest", "\"a\""}},
		{[]string{"hang", "a", "--newest", "."}, []string{"--newest", "\"a\""}},
		{[]string{"hang", "--newest", ".", "-o", "x"}, []string{"--output", "\".\""}},
		{[]string{"latency", "a", "--newest", "."}, []string{"--newest", "\"a\""}},
		{[]string{"list", "a", "b"}, []string{`"b" is an argument too many: stackshot list [DIR]`}},
		{[]string{"list", "--format", "xml"}, []string{"--format", "xml"}},
		{[]string{"report", "/dev/null", "--format", "xml"}, []string{"--format", "xml"}},
		{[]string{"report", "/dev/null", "--pid=-1"}, []string{"--pid", "-1"}},
		{[]string{"report", "/dev/null", "--where", "pid=1 or stat=D"}, []string{"--where: column 10", `unknown field "stat": want state, name,`}},
		{[]string{"report", "/dev/null", "--where="}, []string{"--where: column 1", "want a field"}},
		{[]string{"report", "/dev/null", "--state", "Q"}, []string{"--state", `"Q": want D, R,`}},
		{[]string{"hang", "/dev/null", "--waits-for", "mutx"}, []string{"--waits-for", `"mutx": want at_rest,`}},
		{[]string{"latency", "/dev/null", "--name="}, []string{"--name", "empty"}},
		{[]string{"hang", "a", "b"}, []string{"arg"}},
		{[]string{"hang", "/dev/null", "--format", "xml"}, []string{"--format", "xml"}},
		{[]string{"hang", "/dev/null", "--min-wait", "0"}, []string{"--min-wait", "0s"}},
		{[]string{"hang", "/dev/null", "--pid=-1"}, []string{"--pid", "-1"}},
		{[]string{"hang", "/dev/null", "--engine", "trap"}, []string{"--engine", "/dev/null"}},
		{[]string{"hang", "/dev/null", "-o", "x"}, []string{"--output", "/dev/null"}},
		{[]string{"hang", "--format", "json", "-o", "-"}, []string{"--format json", "-o -"}},
		{[]string{"hang", "--format", "dot", "-o", "-"}, []string{"--format dot", "-o -"}},
		{[]string{"hang", "--engine", "warp"}, []string{"--engine", "warp"}},
		{[]string{"hang", "--count", "2"}, []string{"--count"}},
		{[]string{"hang", "--json"}, []string{"--json"}},
		{[]string{"symbolize"}, []string{"arg"}},
		{[]string{"symbolize", "a", "b"}, []string{"arg"}},
		{[]string{"symbolize", "/dev/null", "--write-timeout", "0"}, []string{"--write-timeout", "0s"}},
		{[]string{"symbolize", "/dev/null", "-o", ""}, []string{"--output"}},
		{[]string{"report", "/dev/null", "--group-by", "colour"}, []string{"--group-by", "colour", "state, stack, wait, task or cgroup"}},
		{[]string{"report", "/dev/null", "--sort-by", "pid"}, []string{"--sort-by", "pid", "age, name, threads or cpu"}},
		{[]string{"report", "/dev/null", "--sort-by", "age", "--format", "json"}, []string{"--sort-by", "--format text", "json"}},
		{[]string{"report", "/dev/null", "--group-by", "task", "--format", "folded"}, []string{"--group-by", "--format text", "folded"}},
		{[]string{"report", "/dev/null", "--color", "blue"}, []string{"--color", "blue", "auto, always or never"}},
		{[]string{"--color=", "hang", "/dev/null"}, []string{"--color", "auto, always or never"}},
		{[]string{"latency"}, []string{"a FILE is missing, or --newest DIR: stackshot latency FILE..."}},
		{[]string{"latency", "/dev/null", "--format", "xml"}, []string{"--format", "xml"}},
		{[]string{"latency", "/dev/null", "--top", "0"}, []string{"--top", "0"}},
		{[]string{"dump"}, []string{"an argument is missing: stackshot dump FILE"}},
		{[]string{"doctor", "x"}, []string{"x"}},
		{[]string{"version", "x"}, []string{"x"}},
		{[]string{"__save"}, []string{"arg"}},
	} {
		if c.args[0] == "take" && !strings.Contains(strings.Join(c.args, " "), "-o") {
			c.args = append(c.args, "-o", out)
		}
		o := stackshot(t, c.args...)
		if o.want(t, exitUsage, append(c.words, "--help")...); o.stdout != "" {
			t.Errorf("%q wrote to stdout: %.100q", c.args, o.stdout)
		}
		if t.Failed() {
			t.Fatalf("of %q", c.args)
		}
	}
	onlyFile(t, filepath.Dir(out))
}

func TestHelpAndVersion(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"take", "--help"}, {"help", "report"}, {"hang", "--help"}, {"doctor", "-h"}} {
		if o := stackshot(t, args...); o.code != 0 || !strings.Contains(o.stdout, "Usage:") || strings.Contains(o.stdout, saveVerb) {
			t.Errorf("%q: exit code %d, %s", args, o.code, o.stdout)
		}
	}
	if o := stackshot(t, "--help"); strings.Contains(o.stdout, "--engine") || !regexp.MustCompile(`(?s)--output FILE.*--pid ID.*--quiet.*--version`).MatchString(o.stdout) {
		t.Errorf("not only the options that are wanted first: %s", o.stdout)
	}
	for _, name := range []string{"report", "hang", "latency"} {
		if o := stackshot(t, name, "--help"); !strings.Contains(o.stdout, "age, threads, cpu.\n'stackshot help where'") {
			t.Errorf("%s does not tell of the fields: %s", name, o.stdout)
		}
	}
	if o := stackshot(t, "help", "help"); !strings.Contains(o.stdout, "or of a topic") {
		t.Errorf("help help: %s", o.stdout)
	}
	if o := stackshot(t, "__complete", "x"); !strings.HasSuffix(o.stdout, ":0\n") {
		t.Errorf("the shell does not complete files: %q", o.stdout)
	}
	if o := stackshot(t, "version", "--licenses"); o.code != 0 || o.stdout != licenses.Text {
		t.Errorf("version --licenses: code %d, %d bytes", o.code, len(o.stdout))
	}
	if o := stackshot(t, "version"); o.code != 0 || !strings.HasPrefix(o.stdout, "stackshot ") {
		t.Errorf("version: %+v", o)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if o := stackshot(t, "completion", shell); o.code != 0 || !strings.Contains(o.stdout, "stackshot") {
			t.Errorf("completion %s: exit code %d, %s", shell, o.code, o.stderr)
		}
	}
	if o := stackshot(t, "__complete", "take", "--engine", ""); !strings.Contains(o.stdout, "trap\npull\nprocfs") {
		t.Errorf("engines to complete: %q", o.stdout)
	}
}

func TestByteSize(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{
		"1": 1, "4096": 4096, "1K": 1 << 10, "2m": 2 << 20, "3G": 3 << 30, "007k": 7 << 10,
		"9223372036854775807": math.MaxInt64, "8589934591G": 8589934591 << 30,
	} {
		var b byteSize
		if err := b.Set(s); err != nil || int64(b) != want {
			t.Errorf("%q: %d, %v, want %d", s, b, err, want)
		}
	}
	for _, s := range []string{"", "K", "0", "0K", "-1", "+1", "1.5M", "1T", "1KB", "1 K", "K1", "1kk", "0x10",
		"9223372036854775808", "8589934592G", "99999999999999999999"} {
		b := byteSize(-1)
		if err := b.Set(s); err == nil || b != -1 {
			t.Errorf("%q: %d, %v", s, b, err)
		}
	}
}

func FuzzByteSize(f *testing.F) {
	for _, s := range []string{"1K", "G", "9223372036854775807G", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var b byteSize
		if err := b.Set(s); (err == nil) != (b > 0) {
			t.Fatalf("%q: %d, %v", s, b, err)
		}
	})
}

// A profile is not for terminals.
func TestProfileOnTerminal(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	_, slave := openTerminal(t)
	in := invocation{bend: func(c *exec.Cmd) { c.Stdout = slave }}
	in.run(t, "report", "/dev/null", "--format", "pprof").want(t, exitUsage, "--format pprof", "terminal")
}
