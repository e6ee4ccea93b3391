package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stackshot/internal/latency"
	"stackshot/internal/show"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// traceFile is a file with a trace, made by hand: no capture, no root.
func traceFile(t *testing.T, name string) {
	t.Helper()
	w := kcdata.NewWriter(make([]byte, 1<<12))
	err := errors.Join(w.Begin(kcdata.MagicStackshot),
		w.StructArray(kcdata.TypeLinuxTrace, []kcdata.LinuxTrace{
			{AtNs: 5_001_000, CPU: 1, Place: kcdata.TraceCensus, Datum: 92}, {AtNs: 5_000_000, Place: kcdata.TraceTaken},
		}), w.End())
	if err == nil {
		err = os.WriteFile(name, w.Written(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Of one file everything is shown, of several the distributions; both as JSON,
// and through standard input in an envelope.
func TestLatency(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	data := smallSnapshot(t, "zstd")
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	for _, name := range []string{a, b} {
		write(t, name, data)
	}
	one := stackshot(t, "latency", a)
	if one.want(t, exitWhole); !strings.Contains(one.stdout, "SCHEDULING LATENCY of ") || !strings.HasPrefix(one.stdout, "latency of ") {
		t.Errorf("one file: %s", one.stdout)
	}
	in := invocation{bend: func(c *exec.Cmd) { c.Stdin = bytes.NewReader(data) }}
	if again := in.run(t, "latency", "-"); again.code != exitWhole || again.stdout != one.stdout {
		t.Errorf("from standard input: exit code %d, %s%s", again.code, again.stderr, again.stdout)
	}
	two := stackshot(t, "latency", a, b)
	if two.want(t, exitWhole); !strings.Contains(two.stdout, "DISTRIBUTIONS over 2 files") || strings.ContainsAny(two.stdout, "\x1b\r") {
		t.Errorf("two files: %s", two.stdout)
	}
	var d struct {
		Format string
		Files  []struct{ Scheduling struct{ Threads int } }
	}
	js := stackshot(t, "latency", "--format", "json", a, b)
	js.want(t, exitWhole)
	if err := json.Unmarshal([]byte(js.stdout), &d); err != nil || d.Format != "stackshot-latency" || len(d.Files) != 2 || d.Files[1].Scheduling.Threads != d.Files[0].Scheduling.Threads {
		t.Errorf("%v: %.300s", err, js.stdout)
	}
}

// Files that cannot be read are named, one line each, and the others reported.
func TestLatencyNamesUnreadableFiles(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	dir := t.TempDir()
	good, cut, absent, evil := filepath.Join(dir, "good"), filepath.Join(dir, "cut"), filepath.Join(dir, "absent"), filepath.Join(dir, "e\x1b[2J")
	traceFile(t, good)
	data := read(t, good)
	for name, content := range map[string][]byte{cut: data[:len(data)-20], evil: []byte("not a snapshot, but long enough to be one")} {
		write(t, name, content)
	}
	o := stackshot(t, "latency", absent, good, cut, evil)
	o.want(t, exitIncomplete, absent+": no such file", cut+": ", "offset 0x", show.Clean(evil)+": ")
	if strings.Count(o.stderr, "\n") != 3 || strings.Contains(o.stderr, "\x1b") || !strings.HasPrefix(o.stdout, "latency of ") {
		t.Errorf("stderr %q, stdout %q", o.stderr, o.stdout)
	}
	o = stackshot(t, "latency", "--format", "json", cut, good)
	var d struct {
		Files  []any
		Failed []latency.Failed
	}
	if err := json.Unmarshal([]byte(o.stdout), &d); err != nil || o.code != exitIncomplete || len(d.Files) != 1 || len(d.Failed) != 1 || d.Failed[0].File != cut {
		t.Errorf("exit code %d, %v: %s", o.code, err, o.stdout)
	}
	o = stackshot(t, "latency", cut, absent)
	if o.want(t, exitFailed, cut, absent); o.stdout != "" {
		t.Errorf("nothing could be read, but: %s", o.stdout)
	}
}

func TestDumpTrace(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	name := filepath.Join(t.TempDir(), "file")
	traceFile(t, name)
	o := stackshot(t, "dump", "--trace", name)
	o.want(t, exitWhole)
	taken, census := strings.Index(o.stdout, "0.000   0  taken"), strings.Index(o.stdout, "1.000   1  census    tasks 92")
	if taken < 0 || census < taken {
		t.Errorf("%s", o.stdout)
	}
	without := filepath.Join(t.TempDir(), "file")
	write(t, without, smallSnapshot(t, "none"))
	if o := stackshot(t, "dump", "--trace", without); o.stdout != "" {
		t.Errorf("no trace, but: %s", o.stdout)
	} else {
		o.want(t, exitFailed, without, "no trace in this file: take --trace")
	}
}

// A child sleeps, and this test knows since when: after it was started, and no
// later than /proc showed it in its sleep. Its age must lie between the two.
func TestLatencyAgeOfASleeper(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	started := time.Now()
	pid := sleeper(t, "/bin/sleep")
	asleep := time.Now()
	time.Sleep(300 * time.Millisecond)
	file := filepath.Join(t.TempDir(), "file")
	before := time.Since(asleep)
	taken(t, stackshot(t, "take", "-q", "--arrival-budget", "200ms", "-o", file, "--pid", pid))
	after := time.Since(started)
	var d struct {
		Files []struct {
			Scheduling struct {
				Sleeping struct {
					Longest []struct {
						AtMost int64 `json:"at_most_ns"`
						Place  string
					}
				}
			}
		}
	}
	o := stackshot(t, "latency", "--format", "json", file)
	if err := json.Unmarshal([]byte(o.stdout), &d); err != nil || len(d.Files) != 1 || len(d.Files[0].Scheduling.Sleeping.Longest) != 1 {
		t.Fatalf("want one sleeper: %v: %s%s", err, o.stdout, o.stderr)
	}
	s := d.Files[0].Scheduling.Sleeping.Longest[0]
	if age := time.Duration(s.AtMost); s.Place == "" || age < before || age > after {
		t.Errorf("it was asleep for at least %v, and started %v ago: %s", before, after, o.stdout)
	}
}
