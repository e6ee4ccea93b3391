package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stackshot/internal/screen"
	"stackshot/internal/testneed"
	"stackshot/internal/verdict"
	"stackshot/kcdata"
)

// Every command that a first screen prints runs as it stands, whatever the file is called.
func TestCommandsOfTheScreenRun(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	data := read(t, hungFile(t, false, true))
	s, err := kcdata.ParseSnapshot(data)
	if err != nil {
		t.Fatal(err)
	}
	proposed := regexp.MustCompile(`(?m)^ *stackshot (.*)$`)
	for _, name := range []string{"hung", "it's $HOME `of` db7", "-x"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, name), data)
		var b bytes.Buffer
		o := screen.Options{Verdict: verdict.Judge(s, defaultMinWait), Width: 80, Height: plainRows, File: name}
		if err := screen.Text(&b, s, o); err != nil {
			t.Fatal(err)
		}
		commands := proposed.FindAllStringSubmatch(b.String(), -1)
		if len(commands) != 3 {
			t.Errorf("%d commands in\n%s", len(commands), b.String())
		}
		for _, m := range commands {
			o := invocation{bend: func(c *exec.Cmd) {
				c.Dir, c.Args = dir, []string{"sh", "-c", `self=$0; stackshot() { "$self" "$@"; }; stackshot ` + m[1], c.Path}
				c.Path = "/bin/sh"
			}}.run(t)
			if want := map[bool]int{true: exitHang, false: exitWhole}[strings.HasPrefix(m[1], "hang ")]; o.code != want || !strings.Contains(o.stdout, "app [70]") {
				t.Errorf("%s: exit code %d, %s, %.300s", m[0], o.code, o.stderr, o.stdout)
			}
		}
	}
}
