package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/userlab"
)

const (
	reportLimit = 10 * time.Second // of `report` for reading files
	grace       = 5 * time.Second
)

// A program whose file hangs on a dead file system: the capture and the report
// come all the same, within the limit, and say what they did not read. Frames have
// their place in the file still.
func TestUserProofStalledBinary(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	needRoot(t)
	p := userlab.StalledBinary(t)
	file := filepath.Join(t.TempDir(), "file")
	o := stackshot(t, "take", "--pid", fmt.Sprint(p.Pid), "-o", file)
	if o.want(t, exitWhole); o.took > reportLimit+grace {
		t.Errorf("take took %v", o.took)
	}
	t.Logf("take %v", o.took)
	o = stackshot(t, "report", file)
	t.Logf("report %v", o.took)
	if o.want(t, exitWhole); o.took > reportLimit+grace {
		t.Errorf("report took %v", o.took)
	}
	for _, want := range []string{p.FS.Path("kperf"), "files not symbolized", "[kperf"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("the report does not say %q:\n%.3000s", want, o.stdout)
		}
	}
}

// Asked to read that file all the same, both commands end in time too: what hangs
// for good are reader processes, and they are gone once the file system answers.
func TestUserProofStalledBinaryAskedFor(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	needRoot(t)
	p := userlab.StalledBinary(t)
	file := filepath.Join(t.TempDir(), "file")
	for _, args := range [][]string{
		{"take", "--remote-files", "--pid", fmt.Sprint(p.Pid), "-o", file},
		{"report", "--remote-files", file},
		{"symbolize", "--remote-files", file},
	} {
		o := stackshot(t, args...)
		if t.Logf("%s %v", args[0], o.took); o.code != exitWhole && o.code != exitIncomplete || o.took > reportLimit+grace {
			t.Errorf("%s ended with %d after %v: %s", args[0], o.code, o.took, o.stderr)
		}
		if args[0] == "report" && !strings.Contains(o.stdout, "no answer in") && !strings.Contains(o.stdout, "does not answer") { // the latter of take's reader
			t.Errorf("the report does not say what hangs:\n%.3000s", o.stdout)
		}
	}
	if len(readers()) == 0 {
		t.Error("nothing hangs: this test shows nothing")
	}
	p.FS.Release()
	if err := testtask.WaitFor(10*time.Second, func() (bool, error) { return len(readers()) == 0, nil }); err != nil {
		t.Fatalf("reader processes %v are left: %v", readers(), err)
	}
}

// readers lists reader processes that hang: of those at work on somebody's
// behalf there may be others.
func readers() (pids []string) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		b, _ := os.ReadFile(file)
		if strings.Contains(string(b), "(stackshot-read) D ") {
			pids = append(pids, file)
		}
	}
	return pids
}

// A perf map that is a trap costs no time, and the report names it. The process is
// one with generated code that needs a map.
func TestUserProofHostilePerfMap(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	needRoot(t)
	node := userlab.Start(t, "node").Of(t, "node")
	path := fmt.Sprintf("/tmp/perf-%d.map", node.Pid)
	real := read(t, path)
	for name, trap := range map[string]func() error{
		"FIFO":        func() error { return unix.Mkfifo(path, 0o600) },
		"/dev/zero":   func() error { return os.Symlink("/dev/zero", path) },
		"other owner": func() error { return first(os.WriteFile(path, real, 0o644), os.Chown(path, 4242, 4242)) },
		"10 GiB":      func() error { return first(os.WriteFile(path, nil, 0o600), os.Truncate(path, 10<<30)) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := first(os.Remove(path), trap()); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "file")
			o := stackshot(t, "take", "--pid", fmt.Sprint(node.Pid), "-o", file)
			took := o.took
			o.want(t, exitWhole)
			o = stackshot(t, "report", file)
			t.Logf("take %v, report %v", took, o.took)
			o.want(t, exitWhole)
			if max(took, o.took) > reportLimit+grace {
				t.Errorf("take took %v, report %v", took, o.took)
			}
			if !strings.Contains(o.stdout, path) || strings.Contains(o.stdout, "JS:") {
				t.Errorf("the report names generated code, or not the map:\n%.3000s", o.stdout)
			}
		})
	}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// What take --keep-stacks leaves, symbolize --unwind makes the same stacks of.
func TestUserProofUnwindCommand(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	needRoot(t)
	k := userlab.StartKperf(t, userlab.Kperf{Frames: userlab.NoFramePointers, Depth: 12})
	dir := t.TempDir()
	kept, bare := filepath.Join(dir, "kept"), filepath.Join(dir, "bare")
	stackshot(t, "take", "-q", "--pid", fmt.Sprint(k.Pid), "--keep-stacks", "-o", kept).want(t, exitWhole)
	stackshot(t, "take", "-q", "--pid", fmt.Sprint(k.Pid), "-o", bare).want(t, exitWhole)
	before := stackshot(t, "report", kept)
	stackshot(t, "symbolize", "--unwind", kept).want(t, exitWhole, "threads again, 0 of them have other frames")
	stackshot(t, "symbolize", "--unwind", kept).want(t, exitWhole, "the file is as it was")
	if after := stackshot(t, "report", kept); before.stdout != after.stdout || !strings.Contains(after.stdout, "recurse_a [kperf") {
		t.Errorf("before\n%s\nafter\n%s", before.stdout, after.stdout)
	}
	stackshot(t, "symbolize", "--unwind", bare).want(t, exitFailed, "--keep-stacks")
}
