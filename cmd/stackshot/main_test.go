package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"stackshot/internal/testdelay"
	"stackshot/internal/testfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testread"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// The tests run the command as people do: built once, static, as a process.
var (
	program    string
	programDir string // others may enter it
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	testdelay.MaybeExec()
	testtask.MaybeRun()
	if len(os.Args) > 1 && (os.Args[1] == readVerb || os.Args[1] == saveVerb) { // of a command that a test ran in this process
		return run(os.Args[1:])
	}
	dir, err := os.MkdirTemp("", "stackshot-cmd-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programDir, program = dir, filepath.Join(dir, "stackshot")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// outcome is one run of the command.
type outcome struct {
	code           int
	stdout, stderr string
	took           time.Duration
	peak           int64 // bytes that it, or a process that it waited for, held at most
}

// invocation is a run to be made; bend changes it before it starts.
type invocation struct {
	bend func(*exec.Cmd)
}

// defaultLimit ends an invocation, which takes milliseconds: whatever else the machine does.
const defaultLimit = testneed.Patience

func stackshot(t *testing.T, args ...string) outcome {
	t.Helper()
	return invocation{}.run(t, args...)
}

// run waits its turn: the tests of other packages hold the machine too, and
// without arguments the command waits for it only a few seconds.
func (i invocation) run(t *testing.T, args ...string) outcome {
	t.Helper()
	args = patient(t, args...)
	for end := time.Now().Add(defaultLimit); ; {
		o := i.once(t, args...)
		if len(args) > 0 || !strings.Contains(o.stderr, snapshot.ErrBusy.Error()) || time.Now().After(end) {
			return o
		}
	}
}

// patient gives a command that captures limits that load does not reach, where the test has not
// chosen its own: it waits its turn, and, but in tier lab, for CPUs that come late.
func patient(t *testing.T, args ...string) []string {
	if len(args) == 0 || args[0] != "take" && !(args[0] == "hang" && slices.Contains(args, "-o")) {
		return args
	}
	limits := []string{"--lock-wait", defaultLimit.String()}
	if !testneed.InLab(t) {
		limits = append(limits, "--arrival-budget", "1s", "--max-pause", "1s")
	}
	for i := 0; i < len(limits); i += 2 {
		if !slices.Contains(args, limits[i]) {
			args = slices.Insert(slices.Clone(args), 1, limits[i], limits[i+1])
		}
	}
	return args
}

func (i invocation) once(t *testing.T, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), defaultLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = t.TempDir()
	cmd.WaitDelay = defaultLimit
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if i.bend != nil {
		i.bend(cmd)
	}
	began := time.Now()
	err := cmd.Run()
	o := outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(began), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", args, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%v took more than %v; stderr: %s", args, defaultLimit, o.stderr)
	}
	if o.code == 0 && (len(args) == 0 || args[0] == "take") {
		filesStandUp(t, began, append(args, cmd.Dir), stdout.Bytes())
	}
	return o
}

// filesStandUp holds every snapshot that a run wrote against the rules of Apple's
// decoder: at a path, in a directory, on standard output.
func filesStandUp(t *testing.T, began time.Time, paths []string, stdout []byte) {
	t.Helper()
	files := [][]byte{stdout}
	if mounts, err := os.ReadFile("/proc/thread-self/mountinfo"); err != nil || bytes.Contains(mounts, []byte(" fuse.")) {
		paths = nil // a file system that this process serves: it would wait for itself
	}
	for _, p := range paths {
		names := []string{p}
		if list, err := os.ReadDir(p); err == nil && len(list) < 100 && strings.HasPrefix(p, os.TempDir()) {
			for _, e := range list {
				names = append(names, filepath.Join(p, e.Name()))
			}
		}
		for _, name := range names {
			if st, err := os.Lstat(name); err == nil && st.Mode().IsRegular() && st.Size() < 64<<20 && !st.ModTime().Before(began) {
				b, _ := os.ReadFile(name)
				files = append(files, b)
			}
		}
	}
	for _, b := range files {
		plain, _, err := kcdata.Unwrap(b, 1<<30)
		if err != nil {
			continue // no snapshot, or a broken one
		}
		if _, err := kcdata.Check(plain); err == nil {
			testread.Want(t, plain)
		}
	}
}

// want checks the exit code and that stderr holds every word.
func (o outcome) want(t *testing.T, code int, words ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d; stderr: %s", o.code, code, o.stderr)
	}
	for _, w := range words {
		if !strings.Contains(o.stderr, w) {
			t.Errorf("stderr %q does not say %q", o.stderr, w)
		}
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	testneed.Root(t)
}

// mode0600 checks that a file is a whole snapshot of mode 0600.
func mode0600(t *testing.T, name string) {
	t.Helper()
	st, err := os.Lstat(name)
	if err != nil {
		t.Error(err)
		return
	}
	if st.Mode() != 0o600 {
		t.Errorf("%s has mode %v", name, st.Mode())
	}
	if o := stackshot(t, "report", name); o.code != 0 || !strings.Contains(o.stdout, "threads in") {
		t.Errorf("report of %s: exit code %d, %s", name, o.code, o.stderr)
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// snapshotOf reads a whole snapshot.
func snapshotOf(t testing.TB, name string) *kcdata.Snapshot {
	t.Helper()
	s, err := readWhole(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Mounts and directories of a test's own.
var withMounts, mount, onlyFile = testfs.WithMounts, testfs.Mount, testfs.Only

// spared finds the snapshot that a message says is in a place of last resort,
// and removes it after the test.
func (o outcome) spared(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(o.stderr) {
		if _, rest, ok := strings.Cut(line, "the snapshot is in "); ok {
			name, _, _ := strings.Cut(rest, " instead")
			t.Cleanup(func() { os.Remove(name) })
			return name
		}
	}
	t.Fatalf("no word of where the snapshot went: %s", o.stderr)
	return ""
}

// asNobody runs the command as a user without rights.
func asNobody(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
}

// openDir makes a directory that everybody can write to.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(programDir, "open-")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
