package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stackshot/internal/manual"
	"stackshot/internal/testneed"
)

// runMake runs the project's Makefile, which builds into a directory of the test's.
func runMake(t *testing.T, built string, args ...string) {
	t.Helper()
	cmd := exec.Command("make", append([]string{"-C", "../..", "built=" + built, "PREFIX=/opt/x"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make %q: %v\n%s", args, err, out)
	}
}

// regular gives the regular files below a directory.
func regular(t *testing.T, root string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What is installed works from where it is, and uninstall takes all of it away.
func TestInstall(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	testneed.Program(t, "make", "mandoc")
	t.Parallel()
	built, dest := filepath.Join(t.TempDir(), "built"), filepath.Join(t.TempDir(), "with space")
	runMake(t, built, "install", "DESTDIR="+dest)
	want := []string{
		"/opt/x/bin/stackshot", "/opt/x/share/bash-completion/completions/stackshot",
		"/opt/x/share/zsh/site-functions/_stackshot", "/opt/x/share/fish/vendor_completions.d/stackshot.fish",
	}
	pages := manual.Pages(newRoot())
	for _, c := range pages {
		section := manual.SectionOf(c)
		page := "/opt/x/share/man/man" + section + "/" + manual.Name(c) + "." + section
		want = append(want, page)
		checkPage(t, c, dest+page)
	}
	slices.Sort(want)
	if got := regular(t, dest); !slices.Equal(got, want) {
		t.Errorf("installed: %q, want %q", got, want)
	}
	if out, err := exec.Command(dest+"/opt/x/bin/stackshot", "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "stackshot ") {
		t.Errorf("%v: %s", err, out)
	}
	for _, file := range want[:4] {
		if b, err := os.ReadFile(dest + file); err != nil || !strings.Contains(string(b), "stackshot") {
			t.Errorf("%s: %v, %.100q", file, err, b)
		}
	}
	other := dest + "/opt/x/share/man/man1/other.1"
	write(t, other, nil)
	runMake(t, built, "uninstall", "DESTDIR="+dest)
	if left := regular(t, dest); len(left) != 1 || dest+left[0] != other {
		t.Errorf("after uninstall: %q", left)
	}
}

// checkPage holds a man page against mandoc's rules, and against the command's help: the same
// options, the same words.
func checkPage(t *testing.T, cmd *cobra.Command, path string) {
	t.Helper()
	if out, err := exec.Command("mandoc", "-Tlint", "-Wwarning", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	out, err := exec.Command("mandoc", "-Tascii", "-Owidth=1000", path).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	shown := flat(regexp.MustCompile(".\b").ReplaceAllString(string(out), "")) // bold and underlined
	sections := []string{"NAME", "DESCRIPTION", "SEE ALSO"}
	if manual.SectionOf(cmd) == "1" {
		sections = append(sections, "SYNOPSIS", "OPTIONS", "EXIT STATUS")
	} else if strings.Contains(shown, "SYNOPSIS") || strings.Contains(shown, "OPTIONS") || strings.Contains(shown, "EXIT") || !strings.Contains(shown, "(7) Miscellaneous") {
		t.Errorf("%s is not the page of a topic: %s", path, shown)
	}
	for _, section := range sections {
		if !strings.Contains(string(out), section[:1]) || !strings.Contains(shown, " "+section+" ") {
			t.Errorf("%s: no %s", path, section)
		}
	}
	texts := []string{cmd.Short, cmd.Long, cmd.Example}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden { // help has it not either
			return
		}
		_, usage := pflag.UnquoteUsage(f)
		texts = append(texts, "--"+f.Name, usage)
	})
	for _, text := range texts {
		if !strings.Contains(shown, strings.TrimSpace(flat(text))) {
			t.Errorf("%s lacks %q:\n%s", path, flat(text), shown)
		}
	}
}

// flat has one space between words.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }
