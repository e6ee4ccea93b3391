package main

import (
	"regexp"
	"testing"

	"stackshot/internal/testfuse"
	"stackshot/internal/testneed"
)

// The commands that are there to be copied start the program as the user did, with sudo if
// that did.
func TestProgramWords(t *testing.T) {
	for _, c := range []struct {
		arg0    string
		euid    int
		sudoUID string
		want    string
	}{
		{"stackshot", 0, "", "stackshot"},
		{"stackshot", 0, "1000", "sudo stackshot"},
		{"stackshot", 0, "0", "stackshot"},       // root called sudo
		{"stackshot", 1000, "1000", "stackshot"}, // sudo -u
		{"./stackshot", 0, "1000", "sudo ./stackshot"},
		{"/opt/my tools/stackshot", 1000, "", "'/opt/my tools/stackshot'"},
		{"/opt/\x1b[2J/stackshot", 0, "", "stackshot"},
		{"a=b/stackshot", 0, "", "'a=b/stackshot'"},
		{"snap", 0, "", "stackshot"},
		{"", 0, "", "stackshot"},
	} {
		if got := programFor(c.arg0, c.euid, c.sudoUID); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// fileOfCommand is the file that a next command names.
var fileOfCommand = regexp.MustCompile(`(?m)^(?:  )?\S*stackshot (?:hang|report(?: --pid \d+)?) (\S+)`)

// The next commands name the file that was written, whether its target answers too late, before the
// screen is shown or after; and the screen has none for a target that may never have the file.
func TestCommandsNameTheFileThatIs(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	for _, timeout := range []string{"500ms", "5s"} { // less and more than targetPatience
		stall(t, testfuse.Create, func(t *testing.T, dir string) {
			o := begun(t, func() outcome {
				return stackshot(t, "take", "--engine", "procfs", "-o", dir+"/x", "--write-timeout", timeout)
			})
			file := o.spared(t)
			found := fileOfCommand.FindAllStringSubmatch(o.stdout, -1)
			for _, m := range found {
				if m[1] != file {
					t.Errorf("%s: %q, and the file is %s", timeout, m[0], file)
				}
			}
			if len(found) == 0 {
				t.Errorf("%s: no command: %.2000s", timeout, o.stdout)
			}
		})
	}
}
