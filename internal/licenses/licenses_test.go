package licenses_test

import (
	"os/exec"
	"strings"
	"testing"

	"stackshot/internal/licenses"
	"stackshot/internal/testneed"
)

// Whatever module is compiled into the command is named with its version, and the
// texts that its licence wants repeated are there.
func TestEveryModuleIsNamed(t *testing.T) {
	testneed.Live(t)
	for _, arch := range []string{"amd64", "arm64"} {
		cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "stackshot/cmd/stackshot")
		cmd.Env = append(cmd.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for module := range strings.FieldsFuncSeq(string(out), func(r rune) bool { return r == '\n' }) {
			n++
			if !strings.Contains(licenses.Text, "\n"+module+"\n") && !strings.Contains(licenses.Text, "\n"+module+", ") {
				t.Errorf("%s: nothing about %s: go generate ./internal/licenses", arch, module)
			}
		}
		if n < 10 {
			t.Errorf("%s: only %d packages of other modules", arch, n)
		}
	}
	for _, words := range []string{
		"Copyright 2009 The Go Authors.", "The MIT License (MIT)", "Apache License", "GPL-2.0 OR Apache-2.0",
	} {
		if n := strings.Count(licenses.Text, words); n == 0 {
			t.Errorf("no %q", words)
		}
	}
}
