package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/snapshot"
)

// keepColors has a test that reads the words of a command line leave --color as it was.
func keepColors(t *testing.T) {
	old := colors
	t.Cleanup(func() { colors = old })
}

// `report` goes before the words that name a file, and before no others.
func TestWordsOf(t *testing.T) {
	keepColors(t)
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.kcdata.zst", "take", "help", "completion", "__save", "__x", "where", "D", "-q"} {
		write(t, name, nil)
	}
	if err := os.Mkdir("dir", 0o755); err != nil {
		t.Fatal(err)
	}
	const file = "a.kcdata.zst"
	for _, c := range []struct {
		report bool
		args   []string
	}{
		{true, []string{file}}, {true, []string{"./" + file}}, {true, []string{"-"}}, {true, []string{"dir"}}, {true, []string{"D"}},
		{true, []string{file + "/x"}}, {true, []string{"nosuch/x"}}, {true, []string{"./x"}}, // report says why they cannot be read
		{true, []string{file, "x"}}, {true, []string{file, "--help"}}, {true, []string{"-h", file}}, {true, []string{file, "--pid"}},
		{true, []string{"--", "take"}}, {true, []string{"--", "-q"}}, {true, []string{"--idle", "--", file}}, {true, []string{"__x"}},
		{true, []string{"--color", "never", file}}, {true, []string{"--color=never", file}}, {true, []string{"--pid", "7", file}},
		{true, []string{"--where", "state=D", file}}, {true, []string{"--idle", file}}, {true, []string{"--format", "json", "-"}},
		{true, []string{"--nonsense=1", file}}, {true, []string{"--", file}}, {true, []string{"./take"}},

		{false, nil}, {false, []string{"take", "--", file}},
		{false, []string{"take"}}, {false, []string{"take", "-o", file}}, {false, []string{"help"}}, {false, []string{"completion", "bash"}},
		{false, []string{"where"}}, {false, []string{"__save"}},
		{false, []string{"-o", file}}, {false, []string{"-o" + file}}, {false, []string{"-qo", file}}, {false, []string{"--output=" + file}},
		{false, []string{"-qo", file, "-q"}}, {false, []string{"--pid", "7"}}, {false, []string{"--pid", file}}, {false, []string{"--pid", "x", file}}, {false, []string{"-x"}},
		{false, []string{"--state", "D"}}, {false, []string{"--where", file}}, {false, []string{"--version"}},
	} {
		want := c.args
		if c.report {
			want = append([]string{"report"}, c.args...)
		}
		if got, err := wordsOf(newRoot(), c.args); !slices.Equal(got, want) || err != nil {
			t.Errorf("%q: %q, %v", c.args, got, err)
		}
		if len(c.args) == 0 {
			continue
		}
		for _, ask := range []string{"__complete", "__completeNoDesc"} {
			asked, want := slices.Concat([]string{ask}, c.args, []string{""}), slices.Concat([]string{ask}, want, []string{""})
			if got, err := wordsOf(newRoot(), asked); !slices.Equal(got, want) || err != nil {
				t.Errorf("%q: %q, %v", asked, got, err)
			}
		}
	}
	for _, c := range [][2]string{ // the command comes first
		{"-q take " + file, "take -q " + file}, {"-qo hang hang " + file, "hang -qo hang " + file}, {"-qo take report x", "report -qo take x"},
		{"--color never dump " + file, "dump --color never " + file}, {"--idle report " + file + " --lines", "report --idle " + file + " --lines"},
		{"--min-wait 5s hang", "hang --min-wait 5s"}, {"-q completion bash", "completion -q bash"},
	} {
		if got, err := wordsOf(newRoot(), strings.Fields(c[0])); strings.Join(got, " ") != c[1] || err != nil {
			t.Errorf("%s: %q, %v", c[0], got, err)
		}
	}
	const neither = "is neither a command nor a file"
	for _, c := range []struct {
		words string
		args  []string
	}{
		{`"" ` + neither, []string{""}}, {`"nosuch" ` + neither, []string{"nosuch"}}, {`"tkae" ` + neither + ": did you mean take?", []string{"tkae"}},
		{`"whre" ` + neither + ": did you mean where?", []string{"whre"}}, {`"4711" ` + neither + ": did you mean --pid 4711?", []string{"4711"}},
		{`"99999999999" ` + neither, []string{"99999999999"}}, {`"mann" ` + neither + ": did you mean hang?", []string{"mann"}},
		{`"__completeX" ` + neither, []string{"__completeX", file, ""}}, {`"l" ` + neither + ": did you mean latency or list?", []string{"l"}}, {`"nosuch" ` + neither, []string{"--where", "state=D", "nosuch", "--format", "json"}},
		{`"nosuch" ` + neither, []string{"-q", "nosuch"}}, {`"` + strings.Repeat("x", 300) + `" ` + neither, []string{strings.Repeat("x", 300)}},
		{`--quiet does not go with a file to read: "` + file + `"`, []string{"-q", file}},
		{`--output does not go with a file to read: "./x"`, []string{"-o", "y", "./x"}}, {`--version does not go with a file to read: "-"`, []string{"--version", "-"}},
	} {
		if _, err := wordsOf(newRoot(), c.args); err == nil || err.Error() != c.words || exitCode(err) != exitUsage {
			t.Errorf("%q: %v, want %s", c.args, err, c.words)
		}
		if asked := append([]string{"__complete"}, append(c.args, "")...); len(asked) > 2 {
			if got, err := wordsOf(newRoot(), asked); !slices.Equal(got, asked) || err != nil { // the shell gets what there is
				t.Errorf("%q: %q, %v", asked, got, err)
			}
		}
	}
}

// Every command is one, whatever files there are: none is taken for the name of a file.
func TestCommandsAreNoFiles(t *testing.T) {
	keepColors(t)
	t.Chdir(t.TempDir())
	for _, c := range newRoot().Commands() {
		write(t, c.Name(), nil)
		args := []string{c.Name(), "x"}
		if got, err := wordsOf(newRoot(), args); !slices.Equal(got, args) || err != nil {
			t.Errorf("%q: %q, %v", args, got, err)
		}
	}
}

// Without a command, a file is reported and a capture taken, with the options of both.
func TestWithoutCommand(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file.zst")
	o := stackshot(t, "-o", file, "--engine", snapshot.EngineProcfs, "--lock-wait", defaultLimit.String(), "--pid", "1")
	if o.want(t, exitWhole); !strings.Contains(o.stdout, "not exact") || strings.Contains(o.stdout, "== ") {
		t.Errorf("not the first screen alone: %s", o.stdout)
	}
	plain, report := stackshot(t, file, "--format", "json"), stackshot(t, "report", file, "--format", "json")
	if plain.want(t, exitWhole); plain.stdout != report.stdout {
		t.Errorf("%.300s\nand of report %.300s", plain.stdout, report.stdout)
	}
	if s, _, err := readSnapshot(file); err != nil || len(s.Tasks) != 1 || s.Tasks[0].ID != 1 {
		t.Errorf("not task 1 alone: %v", err)
	}
	o = stackshot(t, "-q", "--engine", snapshot.EngineProcfs, "-o", filepath.Join(dir, "quiet.zst"), "--lock-wait", defaultLimit.String())
	if o.want(t, exitWhole); o.stdout+o.stderr != "" {
		t.Errorf("not quiet: %q %q", o.stdout, o.stderr)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "quiet.zst")); err != nil || !bytes.HasPrefix(b, []byte("\x28\xb5\x2f\xfd")) {
		t.Errorf("%v, %.10q", err, b)
	}
	if flag, command := stackshot(t, "--version"), stackshot(t, "version"); flag.stdout != command.stdout || flag.code != exitWhole {
		t.Errorf("--version: %+v, version: %+v", flag, command)
	}
	full := invocation{bend: func(c *exec.Cmd) {
		c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `"$@" >/dev/full`, "sh"}, c.Args...)
	}}
	if o := full.once(t, "--version"); o.code != exitFailed || strings.Count(o.stderr, "\n") != 1 || !strings.HasPrefix(o.stderr, "stackshot: ") {
		t.Errorf("--version to a full disk: %+v", o)
	}
	if topic, help := stackshot(t, "where"), stackshot(t, "help", "where"); !strings.Contains(topic.stdout, "cgroup") || topic.stdout != help.stdout || help.code != exitWhole {
		t.Errorf("where: %+v, help where: %+v", topic, help)
	}
}
