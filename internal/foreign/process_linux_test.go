package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
	"stackshot/internal/spawn"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/userlab"
)

const (
	serveWord = "__serve"                  // as the first argument: be a process that reads files
	inProcess = "STACKSHOT_TEST_PROCESSES" // set: the tests' files are read by processes
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serveWord {
		Serve(os.Stdin, os.Stdout)
		unix.Exit(0) // os.Exit would sleep for a second under the race detector
	}
	spawn.Limit = 20 * time.Second
	os.Exit(withOwnSlots(m))
}

// withOwnSlots keeps readers that hang for these tests from counting for others'.
func withOwnSlots(m *testing.M) int {
	dir, err := os.MkdirTemp("", "stackshot-foreign-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	slotPlaces = []string{dir + "/readers"}
	return m.Run()
}

var command = []string{"/proc/self/exe", serveWord}

// asAsked has files read by processes, if the tests run so.
func asAsked(o Options) Options {
	if os.Getenv(inProcess) != "" {
		o.Command = command
	}
	return o
}

// Every test of this package holds where processes read the files.
func TestAllOfThisInProcesses(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	if os.Getenv(inProcess) != "" {
		t.Skip("this is the one that does so")
	}
	// The last test has its files read by processes in any case.
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.skip=^TestMountDiesBetween$")
	cmd.Env = append(os.Environ(), inProcess+"=1", testneed.LiveVar+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestInvariant3Late") {
		t.Errorf("%v\n%s", err, out)
	}
}

func processFiles(t *testing.T, o Options) *Files {
	t.Helper()
	o.Command = command
	f := New(o)
	t.Cleanup(f.Close)
	return f
}

// children lists what this process has started and not waited for, by state of each
// thread.
func children(t *testing.T) (states string) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(tasks) == 0 {
		t.Fatal("no lists of children:", err)
	}
	for _, list := range tasks {
		b, _ := os.ReadFile(list)
		for _, pid := range strings.Fields(string(b)) {
			threads, _ := filepath.Glob("/proc/" + pid + "/task/*/stat")
			for _, thread := range threads {
				if stat, err := os.ReadFile(thread); err == nil {
					states += strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))[1]
				}
			}
		}
	}
	return states
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if err := testtask.WaitFor(10*time.Second, func() (bool, error) { return ok(), nil }); err != nil {
		t.Fatalf("%s: %v; children %q", what, err, children(t))
	}
}

// Invariant 6: what hangs for good is another process. It has been killed, dies
// when its file system answers, and counts until then.
func TestInvariant6NoThreadOfOursHangs(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	if os.Getuid() != 0 {
		testneed.Lacking(t, "needs root: mounts a file system")
	}
	fs := userlab.NewStalledFS(t, userlab.StalledFile{Name: "file", Data: []byte("content"), Mode: 0o644, Direct: true})
	path := fs.Path("file")
	f := processFiles(t, Options{Limit: time.Second, Remote: true})
	fs.Release()
	if v, err := f.Load(path, whole); err != nil || string(v.([]byte)) != "content" {
		t.Fatal(v, err)
	}
	fs.Stall()
	v, err := f.Load(path, whole)
	wantErr(t, v, err, procfs.ErrTimeout, path)
	await(t, "a hanging child", func() bool { return f.Hanging() == 1 && strings.Contains(children(t), "D") })
	tasks, _ := filepath.Glob("/proc/self/task/*/stat")
	for _, task := range tasks {
		if b, _ := os.ReadFile(task); strings.Contains(string(b), ") D ") {
			t.Errorf("a thread of ours hangs: %s", b)
		}
	}
	other := write(t, filepath.Join(t.TempDir(), "other"), []byte("other"))
	if v, err := f.Load(other, whole); err != nil || string(v.([]byte)) != "other" {
		t.Errorf("beside it: %v, %v", v, err)
	}
	fs.Release()
	await(t, "its end", func() bool { return f.Hanging() == 0 && !strings.Contains(children(t), "D") })
	f.Close()
	await(t, "nobody left", func() bool { return children(t) == "" })
}

// A process that was killed costs the file it had.
func TestProcessThatDies(t *testing.T) {
	f := processFiles(t, Options{Limit: 10 * time.Second})
	path := write(t, filepath.Join(t.TempDir(), "file"), []byte("content"))
	v, err := f.Load(path, func(r io.ReaderAt, _ int64) (any, error) {
		p := r.(*reader).in.handle.(*process)
		if err := p.child.Process.Kill(); err != nil {
			t.Error(err)
		}
		_, err := r.ReadAt(make([]byte, 1), 0)
		return nil, err
	})
	wantErr(t, v, err, ErrGone, path)
	if v, err := f.Load(path, whole); err != nil || string(v.([]byte)) != "content" {
		t.Errorf("the next: %v, %v", v, err)
	}
}

// Idle processes end when they are told to, and one is used again and again
// until then. Where none can be started, threads read.
func TestProcessesAreFew(t *testing.T) {
	testneed.Live(t)
	f := processFiles(t, Options{})
	path := write(t, filepath.Join(t.TempDir(), "file"), []byte("content"))
	var seen *process
	for range 20 {
		_, err := f.Load(path, func(r io.ReaderAt, _ int64) (any, error) {
			p := r.(*reader).in.handle.(*process)
			if seen != nil && seen != p {
				t.Error("another process")
			}
			seen = p
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	f.EndIdle()
	await(t, "no process", func() bool { return children(t) == "" })
	if _, err := f.Load(path, whole); err != nil {
		t.Error("after the rest:", err)
	}
	none := New(Options{Command: []string{filepath.Join(t.TempDir(), "none")}})
	defer none.Close()
	if v, err := none.Load(path, whole); err != nil || string(v.([]byte)) != "content" {
		t.Errorf("without a process: %v, %v", v, err)
	}
}

// Large reads go in pieces, and the end of the file is where it is.
func TestProcessReadsAll(t *testing.T) {
	f := processFiles(t, Options{Limit: 10 * time.Second})
	content := []byte(strings.Repeat("0123456789abcdef", (5<<20)/16) + "end")
	path := write(t, filepath.Join(t.TempDir(), "file"), content)
	v, err := f.Load(path, func(r io.ReaderAt, size int64) (any, error) {
		b := make([]byte, size+10)
		n, err := r.ReadAt(b, 0)
		if n != len(content) || !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%d bytes, %v", n, err)
		}
		return b[:n], nil
	})
	if err != nil || string(v.([]byte)) != string(content) {
		t.Error(err)
	}
}

// Whoever waits for a process gets the one that is given back, and starts another only when none is in time.
func TestProcessIsHandedOn(t *testing.T) {
	var ps processes
	for want := 1; want <= 2; want++ { // there is none; there is one, which is not given back
		if p := ps.reuse(); p != nil || ps.live != want {
			t.Fatalf("%v, %d live, want %d", p, ps.live, want)
		}
	}
	one := &process{home: &ps}
	got := make(chan *process)
	go func() {
		p := ps.reuse()
		for ; p == nil; p = ps.reuse() { // this machine is busy
		}
		got <- p
	}()
	for waits := false; !waits; time.Sleep(time.Millisecond) {
		ps.mu.Lock()
		waits = len(ps.waiting) > 0
		ps.mu.Unlock()
	}
	ps.give(one)
	if p := <-got; p != one || len(ps.waiting) != 0 || len(ps.idle) != 0 {
		t.Errorf("%v, %d waiting, %d idle", p, len(ps.waiting), len(ps.idle))
	}
}

// Reads of every size and place give what the file has, whether or not blocks that were kept have it.
func TestReadsOfEverySize(t *testing.T) {
	content := make([]byte, mostBlocks*block*3/2+5)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range content {
		content[i] = byte(r.Uint32())
	}
	path := write(t, filepath.Join(t.TempDir(), "file"), content)
	for name, o := range map[string]Options{"threads": {Limit: 10 * time.Second}, "processes": {Limit: 10 * time.Second, Command: command}} {
		f := New(o)
		defer f.Close()
		_, err := f.Load(path, func(in io.ReaderAt, size int64) (any, error) {
			if n, err := in.ReadAt(make([]byte, 4), -1); n != 0 || !errors.Is(err, unix.EINVAL) {
				return nil, fmt.Errorf("before the start: %d, %v", n, err)
			}
			for range 3000 {
				off, want := r.Int64N(size+10), r.IntN([]int{16, smallRead + 2, 3 * block}[r.IntN(3)])
				if r.IntN(4) == 0 { // about the border of a block
					off = max(off/block*block-int64(r.IntN(8)), 0)
				}
				b := make([]byte, want)
				n, err := in.ReadAt(b, off)
				there := content[min(off, size):min(off+int64(want), size)]
				if !bytes.Equal(b[:n], there) || (err == nil) != (n == want) || err != nil && err != io.EOF {
					return nil, fmt.Errorf("%d bytes at %d of %d: %d, %v", want, off, size, n, err)
				}
			}
			return nil, nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
