package main

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/account"
	"stackshot/internal/golden"
	"stackshot/internal/publish"
	"stackshot/internal/testneed"
	"stackshot/internal/testread"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// One exit code of a capture on a machine that others use too: whole, or not.
func taken(t *testing.T, o outcome) {
	t.Helper()
	if o.code != exitWhole && o.code != exitIncomplete {
		t.Fatalf("exit code %d: %s", o.code, o.stderr)
	}
	// Beside the message: with -o - the report is there, in which user stacks may be
	// incomplete.
	message := slices.DeleteFunc(strings.Split(o.stderr, "\n"), func(l string) bool { return strings.Contains(l, "(user stack incomplete: ") })
	why := strings.Join(message, "\n")
	if (o.code == exitIncomplete) != (strings.Contains(why, "incomplete") || strings.Contains(why, "nothing was stopped")) {
		t.Errorf("exit code %d, but %s", o.code, o.stderr)
	}
}

func TestTakeWritesEachEnvelope(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	for name, magic := range map[string]string{"zstd": "\x28\xb5\x2f\xfd", "zlib": "", "none": ""} {
		file := filepath.Join(t.TempDir(), "file")
		o := stackshot(t, "take", "-o", file, "--compress", name, "--self")
		taken(t, o)
		if !strings.Contains(o.stdout, "threads in") || !strings.Contains(o.stderr, "wrote "+file) {
			t.Errorf("%s: stdout %.200q, stderr %q", name, o.stdout, o.stderr)
		}
		if !strings.Contains(o.stdout, "our own") {
			t.Errorf("--self shows nothing of our own")
		}
		mode0600(t, file)
		onlyFile(t, filepath.Dir(file), "file")
		data, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(data), magic) {
			t.Errorf("%s: %v, begins %q", name, err, data[:4])
		}
		plain, env, err := kcdata.Unwrap(data, maxPlain)
		if err != nil || env.String() != name {
			t.Errorf("%s: envelope %v, %v", name, env, err)
		} else if name != "zstd" { // the standard library has no zstd
			testread.Page(t, file, plain)
		}
	}
}

// The object of --json has exactly these keys, whole numbers where numbers,
// lists where lists.
func TestTakeJSON(t *testing.T) {
	testneed.Smoke(t)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	file := filepath.Join(t.TempDir(), "file")
	o := stackshot(t, "take", "-o", file, "--json")
	taken(t, o)
	var got map[string]any
	var typed takeJSON // its numbers are whole
	d := json.NewDecoder(strings.NewReader(o.stdout))
	d.DisallowUnknownFields()
	if err := errors.Join(json.Unmarshal([]byte(o.stdout), &got), d.Decode(&typed)); err != nil || typed.CPUs.Missing == nil || typed.LeftOut == nil || typed.Warnings == nil {
		t.Fatalf("%v, or no list: %s", err, o.stdout)
	}
	sameKeys(t, got, "file engine isolation tasks threads stopped_ns window_ns arrival_ns elapsed_ns tries bytes cpus stop_broken compared ran files left_out warnings")
	sameKeys(t, typed.Files, "threads files sockets more closed unread opaque moved wanted ends looked pass_ns total_ns delay_ns processes unsettled sources not_done")
	cpus, _ := got["cpus"].(map[string]any)
	sameKeys(t, cpus, "online stopped working missing")
	if typed.File != file || !strings.Contains(readText(t, file), "engine "+typed.Engine) {
		t.Errorf("file %v, engine %v", typed.File, typed.Engine)
	}
}

func sameKeys(t *testing.T, m map[string]any, want string) {
	t.Helper()
	got, list := slices.Sorted(maps.Keys(m)), strings.Fields(want)
	if slices.Sort(list); !slices.Equal(got, list) {
		t.Errorf("keys %q, want %q", got, list)
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	o := stackshot(t, "report", file)
	o.want(t, exitWhole)
	return o.stdout
}

// -o -: the snapshot on standard output, the report on standard error, and
// every command that reads files reads it from a pipe.
func TestTakeToStdout(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	o := stackshot(t, "take", "-o", "-")
	taken(t, o)
	if !strings.Contains(o.stderr, "threads in") {
		t.Errorf("no report on stderr: %.300s", o.stderr)
	}
	for _, cmd := range []string{"report", "latency", "dump"} {
		in := invocation{bend: func(c *exec.Cmd) { c.Stdin = strings.NewReader(o.stdout) }}
		if r := in.run(t, cmd, "-"); r.code != 0 || len(r.stdout) < 1000 {
			t.Errorf("%s -: exit code %d, %s", cmd, r.code, r.stderr)
		}
	}
}

// A reader of the report that leaves early costs nothing.
func TestTakeReaderLeaves(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	o := invocation{bend: func(c *exec.Cmd) { c.Stdout = w }}.run(t, "take", "-o", file)
	w.Close()
	taken(t, o)
	mode0600(t, file)
}

func TestTakePid(t *testing.T) {
	testneed.Smoke(t)
	testneed.Slow(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(child.Process.Pid)
	o := stackshot(t, "take", "-o", file, "--pid", pid, "--pid", strconv.Itoa(os.Getpid()))
	taken(t, o)
	if !strings.Contains(o.stdout, "["+pid+"]") || !strings.Contains(o.stdout, "in 2 tasks") {
		t.Errorf("report: %.500s", o.stdout)
	}
	one := stackshot(t, "report", file, "--pid", pid)
	_, shown, _ := strings.Cut(one.stdout, "\n== THE PICTURE\n")
	_, shown, _ = strings.Cut(shown, "\n== ") // the picture may name who ran meanwhile
	if one.want(t, exitWhole); !strings.Contains(shown, "["+pid+"]") || strings.Contains(shown, "["+strconv.Itoa(os.Getpid())+"]") {
		t.Errorf("report --pid: %s", one.stdout)
	}
	child.Process.Kill()
	child.Wait()
	o = stackshot(t, "take", "-o", file+"2", "--pid", pid)
	o.want(t, exitFailed, "--pid "+pid, "no such task")
	onlyFile(t, filepath.Dir(file), "file")
}

// CPUs that do not exist are refused; those that do, work.
func TestTakeCPUs(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	file := filepath.Join(t.TempDir(), "file")
	o := stackshot(t, "take", "-o", file, "--json", "--cpus", "0", "--buffer", "4M", "--max-pause", "200ms", "--arrival-budget", "50ms", "--stop-isolated")
	taken(t, o)
	var got takeJSON
	if err := json.Unmarshal([]byte(o.stdout), &got); err != nil || got.CPUs.Working > 1 {
		t.Errorf("%v: %+v", err, got)
	}
}

// --redact: no command line in the file.
func TestTakeRedact(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	const secret = "--password=hunter2"
	child := exec.Command("sh", "-c", "read x", secret)
	in, err := child.StdinPipe()
	if err != nil || child.Start() != nil {
		t.Fatal("start sh: ", err)
	}
	defer func() { in.Close(); child.Wait() }()
	for _, redact := range []bool{false, true} {
		o := stackshot(t, "take", "-o", "-", "--compress", "none", "--pid", strconv.Itoa(child.Process.Pid), "--redact="+strconv.FormatBool(redact))
		taken(t, o)
		if strings.Contains(o.stdout, secret) == redact || strings.Contains(o.stderr, secret) == redact {
			t.Errorf("redact %v: the argument is in file: %v, in report: %v", redact, strings.Contains(o.stdout, secret), strings.Contains(o.stderr, secret))
		}
	}
}

// takeJSON is the object that `take --json` prints, as a reader of docs/take-json.md has it.
type takeJSON struct {
	Sequence  int    `json:"sequence"` // in a series, from 1
	File      string `json:"file"`
	Engine    string `json:"engine"`
	Isolation string `json:"isolation"`
	Tasks     int    `json:"tasks"`
	Threads   int    `json:"threads"`
	StoppedNs int64  `json:"stopped_ns"`
	WindowNs  int64  `json:"window_ns"`
	ArrivalNs int64  `json:"arrival_ns"`
	ElapsedNs int64  `json:"elapsed_ns"`
	Tries     int    `json:"tries"`
	Bytes     int64  `json:"bytes"`
	CPUs      struct {
		Online  int   `json:"online"`
		Stopped int   `json:"stopped"`
		Working int   `json:"working"`
		Missing []int `json:"missing"`
	} `json:"cpus"`
	StopBroken int `json:"stop_broken"`
	Compared   int `json:"compared"`
	Ran        int `json:"ran"`
	LeftOut    []struct {
		Tgid    uint32 `json:"tgid"`
		Reason  string `json:"reason"`
		Threads uint32 `json:"threads"`
		Errno   uint32 `json:"errno"`
	} `json:"left_out"`
	Warnings []account.Warning `json:"warnings"`
	Files    map[string]any    `json:"files"`
}

// docs/take-json.md has every key that `take --json` can write.
func TestTakeJSONIsDocumented(t *testing.T) {
	golden.Documented(t, "../../docs/take-json.md", 20, golden.ObjectKeys(t, "deliver.go"))
}

// The file is whole when the report is made: what comes then reads program files of other people.
func TestFileBeforeReport(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	file := filepath.Join(t.TempDir(), "file")
	tk := newTake()
	tk.naming.off, tk.patience = true, testneed.Patience
	made := false
	tk.render = func(_ *os.File, s *kcdata.Snapshot, where string, _ []string) func(io.Writer) error {
		made = true
		if where != file || len(snapshotOf(t, where).Tasks) != len(s.Tasks) {
			t.Errorf("the report names %q", where)
		}
		return func(io.Writer) error { return nil }
	}
	d := &publish.Destination{Writer: publish.Writer{Command: []string{program, saveVerb}, Timeout: testneed.Patience}, Path: file, Given: true}
	if err := tk.deliver(t.Context(), d, kcdata.EnvelopeZstd, &shot{plain: ownFile(t, here(), ""), res: &snapshot.Result{}}); err != nil || !made {
		t.Errorf("report made: %v, %v", made, err)
	}
}
