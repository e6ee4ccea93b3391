package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/publish"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// takeOwn is a small capture: of this test alone.
func takeOwn(args ...string) []string {
	return append([]string{"take", "--pid", strconv.Itoa(os.Getpid())}, args...)
}

// filesIn lists a directory, sorted by name.
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, filepath.Join(dir, e.Name()))
	}
	return out
}

// A series by every engine: a file each, named in the order of the captures; and
// the files themselves say that the machine ran 19 times as long as it stood.
func TestSeries(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	name := regexp.MustCompile(`/stackshot-.*-\d{8}T\d{6}\.\d{3}Z-(\d{4})\.kcdata\.zst$`)
	for _, engine := range []string{"auto", "pull", "trap", "procfs"} {
		dir := t.TempDir()
		o := stackshot(t, takeOwn("--engine", engine, "--count", "4", "-o", dir)...)
		taken(t, o)
		files := filesIn(t, dir)
		if len(files) != 4 {
			t.Fatalf("%s: files %q; %s", engine, files, o.stderr)
		}
		var before kcdata.LinuxCapture
		for i, file := range files {
			mode0600(t, file)
			if m := name.FindStringSubmatch(file); m == nil || m[1] != fmt.Sprintf("%04d", i+1) {
				t.Errorf("%s: file %d is %s", engine, i+1, file)
			}
			if want := fmt.Sprintf("capture %d of 4: ", i+1); !strings.Contains(o.stderr, want) || !strings.Contains(o.stderr, "wrote "+file) {
				t.Errorf("%s: no line for %s: %s", engine, file, o.stderr)
			}
			c := snapshotOf(t, file).Capture
			if i > 0 && engine != "procfs" && c.Tries == 1 && c.StopNs < before.StopNs+20*before.StoppedNs {
				t.Errorf("%s: capture %d stops at %d, after one at %d of %d ns", engine, i+1, c.StopNs, before.StopNs, before.StoppedNs)
			}
			before = c
		}
		if !strings.Contains(o.stderr, "captures: 4; stopped p50 ") || o.stdout != "" {
			t.Errorf("%s: stdout %.100q, no last line in %s", engine, o.stdout, o.stderr)
		}
	}
}

// With --json: an object for each capture, those of take with a number, and
// nothing else on standard output.
func TestSeriesJSON(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	o := stackshot(t, takeOwn("--json", "--count", "3", "--interval", "20ms", "-o", dir+"/x.kcdata", "--compress", "none")...)
	taken(t, o)
	d := json.NewDecoder(strings.NewReader(o.stdout))
	var got []takeJSON
	for d.More() {
		var j takeJSON
		if err := d.Decode(&j); err != nil {
			t.Fatalf("%v: %s", err, o.stdout)
		}
		got = append(got, j)
	}
	if len(got) != 3 || strings.Count(o.stdout, "\n") != 3 {
		t.Fatalf("%d objects: %s", len(got), o.stdout)
	}
	var names []string
	for i, j := range got {
		names = append(names, filepath.Base(j.File))
		if j.Sequence != i+1 || j.Tasks != 1 {
			t.Errorf("object %d: %+v", i, j)
		}
		if c := snapshotOf(t, j.File).Capture; int64(c.StoppedNs) != j.StoppedNs {
			t.Errorf("stopped %d ns in %s, %d in its object", c.StoppedNs, j.File, j.StoppedNs)
		}
	}
	onlyFile(t, dir, names...)
	if want := []string{"x-0001.kcdata", "x-0002.kcdata", "x-0003.kcdata"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	if strings.Contains(o.stderr, "wrote") {
		t.Errorf("progress beside JSON: %s", o.stderr)
	}
}

// Without -o, in the current directory; in any directory, also through a link to
// it. -q: not a word.
func TestSeriesQuiet(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for i, args := range [][]string{nil, {"-o", link}, {"-o", dir + "/"}} {
		o := invocation{bend: func(c *exec.Cmd) { c.Dir = dir }}.run(t, takeOwn(append(args, "-q", "--count", "2")...)...)
		taken(t, o)
		if files := filesIn(t, dir); len(files) != 2*i+2 || o.stdout != "" || o.code == 0 && o.stderr != "" {
			t.Errorf("%q: files %q, stdout %q, stderr %q", args, files, o.stdout, o.stderr)
		}
	}
}

// running is a series that tells each capture by a JSON line.
type running struct {
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr *bytes.Buffer
}

func startSeries(t *testing.T, pid int, args ...string) *running {
	t.Helper()
	args = append([]string{"take", "--json", "--pid", strconv.Itoa(pid)}, args...)
	r := &running{cmd: exec.Command(program, patient(t, args...)...), stderr: new(bytes.Buffer)}
	r.cmd.Stderr = r.stderr
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.cmd.Process.Kill(); r.cmd.Wait() })
	r.lines = bufio.NewScanner(out)
	return r
}

// next waits for n more captures.
func (r *running) next(t *testing.T, n int) {
	t.Helper()
	limit := time.AfterFunc(2*time.Minute, func() { r.cmd.Process.Kill() })
	defer limit.Stop()
	for i := range n {
		if !r.lines.Scan() {
			t.Fatalf("the series ends after %d of %d: %v, %s", i, n, r.lines.Err(), r.stderr)
		}
	}
}

// end reads on to the end, which must come.
func (r *running) end(t *testing.T) (more int, o outcome) {
	t.Helper()
	limit := time.AfterFunc(defaultLimit, func() { t.Error("the series goes on"); r.cmd.Process.Kill() })
	defer limit.Stop()
	for r.lines.Scan() {
		more++
	}
	r.cmd.Wait()
	return more, outcome{code: r.cmd.ProcessState.ExitCode(), stderr: r.stderr.String()}
}

// A signal ends a series; the files stay, each whole. That is how a series
// without end is to end, and not how one of a thousand is.
func TestSeriesInterrupted(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	for _, c := range []struct {
		count    string
		interval string
		after    int // captures
		sig      unix.Signal
		code     int
		word     string
	}{
		{"0", "10ms", 2, unix.SIGINT, exitWhole, "captures: "},
		{"0", "1h", 1, unix.SIGTERM, exitWhole, "captures: 1; stopped p50"},
		{"1000", "10ms", 2, unix.SIGTERM, exitIncomplete, "interrupted (terminated); captures made: "},
		{"1000", "1h", 1, unix.SIGINT, exitIncomplete, "interrupted (interrupt); captures made: 1"},
	} {
		dir := t.TempDir()
		r := startSeries(t, os.Getpid(), "--count", c.count, "--interval", c.interval, "-o", dir+"/")
		r.next(t, c.after)
		r.cmd.Process.Signal(c.sig)
		more, o := r.end(t)
		if strings.Contains(o.stderr, "incomplete:") {
			c.code = exitIncomplete // the host was in the way
		}
		o.want(t, c.code, c.word)
		files := filesIn(t, dir)
		if len(files) != c.after+more {
			t.Errorf("%d files, %d objects", len(files), c.after+more)
		}
		for _, f := range files {
			mode0600(t, f)
		}
	}
}

// The disk fills up in the middle: the series goes on, what the disk refuses
// goes to memory, but not without limit, and nothing is there in part.
func TestSeriesFullDisk(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	dir := t.TempDir()
	withMounts(t, func(t *testing.T) {
		mount(t, "none", dir, "tmpfs", 0, "size=64k")
		mount(t, "none", "/dev/shm", "tmpfs", 0, "size=16m")
		filler := bytes.Repeat([]byte{1}, 44<<10)
		write(t, dir+"/a", filler)
		const count = 15
		o := stackshot(t, takeOwn("--engine", "procfs", "--count", strconv.Itoa(count), "--interval", "1ms", "-o", dir)...)
		o.want(t, exitIncomplete, "no space left on device", "the snapshot is lost", "saved somewhere else", fmt.Sprintf("captures: %d;", count))
		here, spared := filesIn(t, dir)[1:], filesIn(t, "/dev/shm")
		if len(here) == 0 || len(spared) != publish.MaxLastResort || len(here)+len(spared) >= count {
			t.Errorf("%d on the disk, %d in memory; %s", len(here), len(spared), o.stderr)
		}
		for _, f := range append(here, spared...) {
			snapshotOf(t, f)
		}
	})
}

// The task that is captured ends: so does the series, with what it has.
func TestSeriesTaskEnds(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	needRoot(t)
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := startSeries(t, child.Process.Pid, "--engine", "procfs", "--count", "0", "--interval", "10ms", "-o", dir)
	r.next(t, 1)
	child.Process.Kill()
	child.Wait()
	_, o := r.end(t)
	o.want(t, exitIncomplete, "no such task", "its task is gone; captures made: ")
	if len(filesIn(t, dir)) == 0 {
		t.Error("no file")
	}
}

// Targets that are refused before anything is captured.
func TestSeriesRefusedTargets(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	dir := t.TempDir()
	for _, path := range []string{dir + "/none/", dir + "/none/x", "/proc/self/comm/x", dir + "/x\x01/"} {
		o := stackshot(t, takeOwn("--count", "2", "--json", "-o", path)...)
		if o.want(t, exitFailed, "stackshot: "); o.stdout != "" {
			t.Errorf("%s: captured all the same", path)
		}
	}
	onlyFile(t, dir)
}

// stateOf is what a process holds: resident bytes, open files, memory files
// that are mapped.
func stateOf(t *testing.T, pid int) (rss, fds, mapped int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", pid)
	status := read(t, dir+"status")
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	fmt.Sscan(rest, &rss)
	maps := read(t, dir+"maps")
	return rss << 10, len(filesIn(t, dir+"fd")), strings.Count(string(maps), "/memfd:")
}
