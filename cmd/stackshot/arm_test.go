package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"stackshot/internal/arm"
	"stackshot/internal/panicregion"
	"stackshot/internal/resident"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// armedProcess is `stackshot arm`, started by a test.
type armedProcess struct {
	cmd   *exec.Cmd
	dir   string
	line  string // what is armed
	lines chan string
	mu    sync.Mutex
	said  []string // by mu; all lines of standard error
	out   bytes.Buffer
}

// startArm arms the machine, and skips the test where the kernel has nothing to hook.
func startArm(t *testing.T, args ...string) *armedProcess {
	t.Helper()
	needRoot(t)
	a := &armedProcess{dir: t.TempDir(), lines: make(chan string, 10_000)}
	a.cmd = exec.Command(program, append([]string{"arm", "--dir", a.dir}, args...)...)
	a.cmd.Stdout = &a.out
	said, err := a.cmd.StderrPipe()
	if err == nil {
		err = a.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.cmd.Process.Kill(); a.cmd.Wait() })
	go func() {
		defer close(a.lines)
		for s := bufio.NewScanner(said); s.Scan(); {
			a.mu.Lock()
			a.said = append(a.said, s.Text())
			a.mu.Unlock()
			a.lines <- s.Text()
		}
	}()
	a.line = a.await(t, "armed: ")
	return a
}

// await waits for a line of standard error that has the word.
func (a *armedProcess) await(t *testing.T, word string) string {
	t.Helper()
	limit := time.After(defaultLimit)
	for {
		select {
		case line, ok := <-a.lines:
			switch {
			case !ok && strings.Contains(a.text(), "BPF recording is not available"):
				testneed.Hooks(t, errors.New(a.text()))
			case !ok:
				t.Fatalf("it ends before %q: %s", word, a.text())
			case strings.Contains(line, word):
				return line
			}
		case <-limit:
			t.Fatalf("no %q: %s", word, a.text())
		}
	}
}

func (a *armedProcess) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.said, "\n")
}

// sysrq asks for a capture, and waits for its file.
func (a *armedProcess) sysrq(t *testing.T) (file string) {
	t.Helper()
	trigger(t)
	line := a.await(t, ": wrote ")
	_, rest, _ := strings.Cut(line, ": wrote ")
	return rest[:strings.LastIndex(rest, ", ")]
}

func trigger(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("/proc/sysrq-trigger", []byte{arm.DefaultKey}, 0); err != nil {
		t.Fatal(err)
	}
}

// end ends it by a signal.
func (a *armedProcess) end(t *testing.T, s os.Signal) outcome {
	t.Helper()
	a.cmd.Process.Signal(s)
	for range a.lines {
	}
	a.cmd.Wait()
	return outcome{code: a.cmd.ProcessState.ExitCode(), stdout: a.out.String(), stderr: a.text()}
}

// bpfObjects counts what BPF has on this machine, and functions that are traced.
func bpfObjects(t *testing.T) map[string]int {
	t.Helper()
	n := map[string]int{}
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		n["programs"]++
	}
	for id, err := ebpf.MapGetNextID(0); err == nil; id, err = ebpf.MapGetNextID(id) {
		n["maps"]++
	}
	for it := new(link.Iterator); it.Next(); {
		n["links"]++
	}
	if b, err := os.ReadFile("/sys/kernel/tracing/enabled_functions"); err == nil {
		n["functions"] = bytes.Count(b, []byte("\n"))
	}
	return n
}

// waitForObjects waits until the kernel has freed what it frees late (RCU).
func waitForObjects(t *testing.T, want map[string]int) {
	t.Helper()
	var got map[string]int
	for range 200 {
		if got = bpfObjects(t); maps.Equal(got, want) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("left behind: before %v, now %v", want, got)
}

// wantOnce: no thread is in the file twice, and each of the crowd is, and each CPU's idle thread.
func wantOnce(t *testing.T, s *kcdata.Snapshot, crowd *testtask.Fixture) {
	t.Helper()
	in, idle := map[int]int{}, 0
	for _, task := range s.Tasks {
		if task.ID == 0 {
			idle += len(task.Threads)
		}
		for _, th := range task.Threads {
			if in[int(th.ID)]++; in[int(th.ID)] == 2 {
				t.Errorf("thread %d is in the file twice", th.ID)
			}
		}
	}
	if idle != len(s.CPUs) || idle == 0 {
		t.Errorf("%d idle threads, %d CPUs", idle, len(s.CPUs))
	}
	for i := range crowd.Children {
		tids, err := crowd.Children[i].Verify()
		if err != nil {
			t.Fatal(err)
		}
		for _, tid := range tids {
			if in[tid] != 1 {
				t.Errorf("thread %d is in the file %d times", tid, in[tid])
			}
		}
	}
}

// A SysRq by /proc/sysrq-trigger: every thread once, a first screen, a file; a hundred of them leave
// nothing behind; a second arm is refused; the end removes the list of frames.
func TestArm(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	objects := bpfObjects(t)
	crowd := testtask.Start(t, testtask.Crowd(200)...)
	var args []string
	if runtime.GOARCH == "arm64" { // the crowd's threads share their maker's stack, of which up to 24 KiB are taken for each
		args = []string{"--buffer", "64M"}
	}
	a := startArm(t, args...)
	t.Log(a.line)
	wakes := strings.Contains(a.line, "(an ordinary capture)") // before 6.7
	frames := ""
	if !wakes {
		frames = armFrames(t, a)
	}

	file := a.sysrq(t)
	mode0600(t, file)
	s := snapshotOf(t, file)
	if !wakes { // an ordinary capture stops within its pause, for which an emulated machine may be too slow
		wantOnce(t, s, crowd)
	}
	if (s.Engine == "sysrq") == wakes {
		t.Errorf("engine %q", s.Engine)
	}
	report := stackshot(t, "report", file)
	report.want(t, exitWhole)

	second := stackshot(t, "arm", "--dir", a.dir)
	second.want(t, exitFailed, resident.ErrArmed.Error(), fmt.Sprintf("pid %d since 20", a.cmd.Process.Pid))

	if wakes {
		a.end(t, syscall.SIGTERM)
		waitForObjects(t, objects)
		return
	}
	manySysrqs(t, a, testneed.Length(10, 100))
	o := a.end(t, syscall.SIGTERM)
	o.want(t, exitWhole, "disarmed: ", "not saved in time: 0, refused by kernel.sysrq: 0")
	if !strings.Contains(o.stdout, "threads") || len(o.stdout) < 200 {
		t.Errorf("no first screen: %q", o.stdout)
	}
	if _, err := os.Stat(frames); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", frames, err)
	}
	waitForObjects(t, objects)
}

// manySysrqs: no file, BPF object, descriptor or memory stays. Go's collector may take more memory
// once, and what helpers held goes late; what leaks takes more each time.
func manySysrqs(t *testing.T, a *armedProcess, n int) {
	t.Helper()
	a.sysrq(t)
	files, objects := len(filesIn(t, a.dir)), bpfObjects(t)
	grown := "?"
	for round := 1; round <= 4 && grown != ""; round++ {
		rss, fds, mapped := stateOf(t, a.cmd.Process.Pid)
		began := time.Now()
		for range n {
			a.sysrq(t)
		}
		took := time.Since(began)
		if now := len(filesIn(t, a.dir)); now != files+round*n {
			t.Errorf("%d captures made %d files", round*n, now-files)
		}
		rssNow, fdsNow, mappedNow := stateOf(t, a.cmd.Process.Pid)
		t.Logf("%d captures in %v: resident %d to %d KiB, files %d to %d, mapped %d to %d", n, took, rss>>10, rssNow>>10, fds, fdsNow, mapped, mappedNow)
		if grown = ""; fdsNow > fds+2 || mappedNow > mapped || rssNow > rss+12<<20 {
			grown = fmt.Sprintf("%q", openFiles(a.cmd.Process.Pid))
		}
	}
	if grown != "" {
		t.Errorf("it grows each time: %s", grown)
	}
	waitForObjects(t, objects)
}

// openFiles are the targets of a process's descriptors.
func openFiles(pid int) (list []string) {
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	names, _ := os.ReadDir(dir)
	for _, n := range names {
		to, _ := os.Readlink(dir + n.Name())
		list = append(list, to)
	}
	return list
}

// armFrames: the list is a file of mode 0600 whose head and pages are whole and name each page of
// the region once.
func armFrames(t *testing.T, a *armedProcess) string {
	t.Helper()
	list, err := filepath.Glob(a.dir + "/*.frames")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if st, err := os.Stat(list[0]); err != nil || st.Mode() != 0o600 {
		t.Errorf("%s: %v, %v", list[0], st.Mode(), err)
	}
	b := read(t, list[0])
	head, err := panicregion.ReadStatic(b)
	if err != nil {
		t.Fatal(err)
	}
	pages, runs := uint64(0), 0
	for at := panicregion.PageSize; at < len(b); at += panicregion.PageSize {
		l, err := panicregion.ReadList(b[at:])
		if err != nil || l.Region != head.Region || l.BootID != head.BootID {
			t.Fatalf("list page at %d: %+v, %v", at, l, err)
		}
		for _, r := range l.Runs {
			pages, runs = pages+r.Count, runs+1
		}
	}
	if pages != head.Pages || len(b) != (1+int(head.ListPages))*panicregion.PageSize {
		t.Errorf("%d pages are listed of %d; %d bytes", pages, head.Pages, len(b))
	}
	t.Logf("%d pages in %d runs", pages, runs)
	return list[0]
}

// SIGKILL leaves nothing attached, and the machine can be armed again.
func TestArmKilled(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	objects := bpfObjects(t)
	a := startArm(t, "--no-panic", "--user-stacks", "off")
	if got := bpfObjects(t); got["links"] <= objects["links"] || got["functions"] <= objects["functions"] {
		t.Errorf("armed: %v, before %v", got, objects)
	}
	if _, err := strconv.Atoi(strings.Fields(lockText(t))[1]); err != nil {
		t.Error(err)
	}
	a.end(t, syscall.SIGKILL)
	waitForObjects(t, objects)
	trigger(t) // nobody answers, nothing happens
	if h, err := resident.Running(resident.Path); h != nil || err != nil {
		t.Errorf("%v, %v", h, err)
	}
}

func lockText(t *testing.T) string {
	t.Helper()
	b := read(t, resident.Path)
	for _, word := range []string{"pid ", "\nsince ", "\nlive ", "\nregion "} {
		if !strings.Contains(string(b), word) {
			t.Errorf("%s: %q lacks %q", resident.Path, b, word)
		}
	}
	return string(b)
}

// Values that are refused, each with a word of the reason.
func TestArmRefuses(t *testing.T) {
	testneed.Live(t)
	for word, args := range map[string][]string{
		"crashes the machine": {"--sysrq", "c"}, "log level": {"--sysrq", "7"}, "one character": {"--sysrq", "yy"},
		"digits and letters": {"--sysrq", " "}, "1ms to 5s": {"--panic-pause", "6s"}, "want 131072": {"--buffer", "1K"},
		"nothing is left": {"--no-sysrq", "--no-panic"}, "exclude": {"--no-sysrq", "--sysrq", "y"},
		"auto, fp or off": {"--user-stacks", "x"}, "on or off": {"--wait", "x"}, "zstd, zlib or none": {"--compress", "x"}, "want a value": {"--dir", ""},
	} {
		stackshot(t, append([]string{"arm"}, args...)...).want(t, exitUsage, word)
	}
	needRoot(t)
	stackshot(t, "arm", "--dir", "/nonexistent/x").want(t, exitFailed, "/nonexistent/x")
}
