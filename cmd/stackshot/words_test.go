package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/snapshot"
)

// `report` goes before the words that name a file, and before no others.
func TestWithReport(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.kcdata.zst", "take", "help", "completion", "__save", "where", "D"} {
		write(t, name, nil)
	}
	if err := os.Mkdir("dir", 0o755); err != nil {
		t.Fatal(err)
	}
	file, missing, long := "a.kcdata.zst", "b.kcdata.zst", strings.Repeat("x", 300)
	for _, c := range []struct {
		report bool
		args   []string
	}{
		{true, []string{file}}, {true, []string{"./" + file}}, {true, []string{"-"}}, {true, []string{"dir"}}, {true, []string{"D"}},
		{true, []string{file + "/x"}}, {true, []string{long}}, // report says why they cannot be read
		{true, []string{file, missing}}, {true, []string{file, "--help"}}, {true, []string{file, "--pid"}}, {true, []string{file, "-o", "x"}},
		{true, []string{"--color", "never", file}}, {true, []string{"--color=never", file}}, {true, []string{"--pid", "7", file}},
		{true, []string{"--where", "state=D", file}}, {true, []string{"--idle", file}}, {true, []string{"--format", "json", "-"}},
		{true, []string{"--nonsense=1", file}}, {true, []string{"--", file}}, {true, []string{"./take"}}, {true, []string{"-q", file}},

		{false, nil}, {false, []string{""}}, {false, []string{missing}}, {false, []string{"tkae"}}, {false, []string{"dir/x"}},
		{false, []string{"take"}}, {false, []string{"take", "-o", file}}, {false, []string{"help"}}, {false, []string{"completion", "bash"}},
		{false, []string{"where"}}, {false, []string{"__save"}}, {false, []string{"__complete", file}}, {false, []string{"--color", "never", "dump", file}},
		{false, []string{"-o", file}}, {false, []string{"-o" + file}}, {false, []string{"-qo", file}}, {false, []string{"--output=" + file}},
		{false, []string{"--output", file, "-q"}}, {false, []string{"--pid", "7"}}, {false, []string{"--pid", file}}, {false, []string{"--pid", "x", file}},
		{false, []string{"--state", "D"}}, {false, []string{"--where", file}}, {false, []string{"--version", missing}}, {false, []string{"-x"}},
	} {
		want := c.args
		if c.report {
			want = append([]string{"report"}, c.args...)
		}
		if got := withReport(c.args); !slices.Equal(got, want) {
			t.Errorf("%q: %q", c.args, got)
		}
	}
}

// Every command is one, whatever files there are: none is taken for the name of a file.
func TestCommandsAreNoFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range newRoot().Commands() {
		write(t, c.Name(), nil)
		if args := []string{c.Name(), "x"}; !slices.Equal(withReport(args), args) {
			t.Errorf("%q: %q", args, withReport(args))
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
	if topic, help := stackshot(t, "where"), stackshot(t, "help", "where"); !strings.Contains(topic.stdout, "cgroup") || topic.stdout != help.stdout || help.code != exitWhole {
		t.Errorf("where: %+v, help where: %+v", topic, help)
	}
}
