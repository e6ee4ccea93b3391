package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

// samples makes a directory of one file as two, one that breaks off, one that is none, and a
// FIFO which looks like one.
func samples(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	whole := read(t, sample(t))
	for name, b := range map[string][]byte{"a name": whole, "b.kcdata.zst": whole, "empty.kcdata": nil} {
		write(t, filepath.Join(dir, name), b)
	}
	cutSample(t, dir)
	if err := unix.Mkfifo(filepath.Join(dir, "fifo.kcdata"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A file that is broken is listed with its reason, and the rest goes on. Text and JSON say the same.
func TestList(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	dir := samples(t)
	text, doc := stackshot(t, "list", dir), stackshot(t, "list", "--format", "json", dir)
	text.want(t, exitIncomplete, dir, ": 2")
	doc.want(t, exitIncomplete, dir, ": 2")
	var list struct {
		Files []struct {
			File, Path, Host, Verdict, Error string
			Threads                          int
		}
	}
	if err := json.Unmarshal([]byte(doc.stdout), &list); err != nil || len(list.Files) != 4 {
		t.Fatalf("%v: %s", err, doc.stdout)
	}
	at := 0
	for i, want := range []string{"a name", "b.kcdata.zst", "cut", "empty.kcdata"} {
		f := list.Files[i]
		if f.File != want || (f.Error == "") != (i < 2) || i < 3 && (f.Verdict == "" || f.Threads == 0) {
			t.Errorf("%d: %+v, want %s", i, f, want)
		}
		for _, word := range []string{f.Host, f.Path, f.Error, f.Verdict} {
			n := strings.Index(text.stdout[at:], word)
			if n < 0 {
				t.Fatalf("the text lacks %q after %q", word, text.stdout[:at])
			}
			at += n
		}
	}
	quick := stackshot(t, "list", "--no-verdict", dir)
	if quick.want(t, exitIncomplete); strings.Contains(quick.stdout, list.Files[0].Verdict) || !strings.Contains(quick.stdout, "a name") {
		t.Errorf("--no-verdict: %s", quick.stdout)
	}
	if o := stackshot(t, "list", "/nowhere"); o.code != exitFailed || o.stderr != "stackshot: /nowhere: no such file or directory\n" {
		t.Errorf("%+v", o)
	}
	if o := stackshot(t, "list"); o.code != 0 || !strings.HasPrefix(o.stdout, "no snapshot in /") {
		t.Errorf("%+v", o)
	}
}

// What a list says of a file is the first that its screen says.
func TestListSaysWhatTheScreenSays(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	list, report := stackshot(t, "list", filepath.Dir(sample(t))), stackshot(t, "report", "--no-symbols", sample(t))
	lines := strings.Split(list.stdout, "\n")
	if len(lines) < 3 || lines[2] == "" || !strings.Contains(report.stdout, strings.TrimSpace(lines[2])) {
		t.Errorf("%q\nreport: %.2000s", lines, report.stdout)
	}
}

// Many files take the memory of one.
func TestListOfManyFiles(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	dir, n := t.TempDir(), testneed.Length(100, 1000)
	whole := read(t, sample(t))
	for i := range n {
		write(t, filepath.Join(dir, fmt.Sprint(i)), whole)
	}
	const most = 300 << 20
	if o := stackshot(t, "list", dir); o.code != 0 || !strings.Contains(o.stdout, fmt.Sprintf("%d snapshots in ", n)) || o.peak > most {
		t.Errorf("exit code %d, %d bytes, %s", o.code, o.peak, o.stderr)
	}
}

// Without a file, report takes the newest of the directory, and says which.
func TestNewest(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	dir := samples(t)
	inside := invocation{bend: func(c *exec.Cmd) { c.Dir = dir }}
	here := inside.run(t, "report")
	here.want(t, 0, dir, "is a name\n", "empty.kcdata is left out: not a snapshot: the file is empty")
	there := stackshot(t, "report", "--newest", dir)
	there.want(t, 0, dir+"/a name\n")
	if want := inside.run(t, "report", "a name").stdout; here.stdout != want {
		t.Errorf("%.200q, want %.200q", here.stdout, want)
	}
	if want := stackshot(t, "report", dir+"/a name").stdout; there.stdout != want {
		t.Errorf("%.200q, want %.200q", there.stdout, want)
	}
	for _, verb := range []string{"hang", "latency"} {
		direct, o := stackshot(t, verb, dir+"/a name"), stackshot(t, verb, "--newest", dir)
		if o.want(t, direct.code, dir+"/a name\n"); o.stdout != direct.stdout {
			t.Errorf("%s: %.200q, want %.200q", verb, o.stdout, direct.stdout)
		}
	}
	none := invocation{bend: func(c *exec.Cmd) { c.Dir = filepath.Join(dir, "..") }}
	for _, args := range [][]string{{"report"}, {"hang", "--newest", "."}, {"latency", "--newest", "."}} {
		o := none.run(t, args...)
		o.want(t, exitFailed, "no snapshot in "+filepath.Dir(dir))
		if o.stdout != "" || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%q: %+v", args, o)
		}
	}
	gone := stackshot(t, "report", "--newest", "/nowhere")
	if gone.code != exitFailed || gone.stderr != "stackshot: /nowhere: no such file or directory\n" {
		t.Errorf("%+v", gone)
	}
	var in bytes.Buffer // a file is named, so none is looked for
	in.WriteString("no snapshot")
	o := invocation{bend: func(c *exec.Cmd) { c.Dir, c.Stdin = dir, &in }}.run(t, "report", "-")
	if o.code != exitFailed || strings.Contains(o.stderr, "newest") {
		t.Errorf("%+v", o)
	}
}

// A line break in the name of a directory makes no line of its own.
func TestNewestNameIsOneLine(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a\nb")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if o := stackshot(t, "report", "--newest", dir); o.code != exitFailed || strings.Count(o.stderr, "\n") != 1 {
		t.Errorf("%d, %q", o.code, o.stderr)
	}
}
