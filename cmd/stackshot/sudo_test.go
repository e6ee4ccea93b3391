package main

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"stackshot/internal/testfuse"
	"stackshot/internal/testneed"
)

// The commands that are there to be copied start the program as the user did, with sudo where only
// root can read the file.
func TestProgramWords(t *testing.T) {
	for _, c := range []struct {
		arg0     string
		euid     int
		sudoUID  string
		readable bool
		want     string
	}{
		{"stackshot", 0, "", false, "stackshot"},
		{"stackshot", 0, "1000", false, "sudo stackshot"},
		{"stackshot", 0, "1000", true, "stackshot"},
		{"stackshot", 0, "0", false, "stackshot"},       // root called sudo
		{"stackshot", 1000, "1000", false, "stackshot"}, // sudo -u
		{"./stackshot", 0, "1000", false, "sudo ./stackshot"},
		{"/opt/my tools/stackshot", 1000, "", false, "'/opt/my tools/stackshot'"},
		{"/opt/\x1b[2J/stackshot", 0, "", false, "stackshot"},
		{"snap", 0, "", false, "stackshot"},
		{"", 0, "", false, "stackshot"},
	} {
		if got := programFor(c.arg0, c.euid, c.sudoUID, c.readable); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestReadableWithoutSudo(t *testing.T) {
	name := t.TempDir() + "/file"
	write(t, name, nil)
	own, other := [2]string{strconv.Itoa(os.Geteuid()), strconv.Itoa(os.Getegid())}, "4294967294"
	for _, c := range []struct {
		mode     os.FileMode
		uid, gid string
		want     bool
	}{
		{0o600, own[0], other, true}, {0o600, other, own[1], false}, {0o640, other, own[1], true}, {0o640, other, other, false},
		{0o604, other, other, true}, {0o044, own[0], own[1], false},
	} {
		t.Setenv("SUDO_UID", c.uid)
		t.Setenv("SUDO_GID", c.gid)
		if err := os.Chmod(name, c.mode); err != nil {
			t.Fatal(err)
		}
		if got := readableWithoutSudo(name); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if readableWithoutSudo(name + "-none") {
		t.Error("a file that is not there")
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
