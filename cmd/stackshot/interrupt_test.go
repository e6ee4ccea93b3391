package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testdelay"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/snapshot"
)

// watched is output that can be looked at while it is written.
type watched struct {
	mu  sync.Mutex
	buf bytes.Buffer // by mu
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(b)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// interrupt sends a signal once stdout holds a word ("": after a moment)
// and wants the process to end within 3 s.
func interrupt(t *testing.T, when string, sig unix.Signal, args ...string) outcome {
	t.Helper()
	ready := func(stdout string) bool { return strings.Contains(stdout, when) }
	if when == "" {
		moment := time.Now().Add(300 * time.Millisecond)
		ready = func(string) bool { return time.Now().After(moment) }
	}
	return interruptBent(t, func(*exec.Cmd) {}, ready, sig, args...)
}

// interruptBent is interrupt of a command that was changed, once ready says so.
func interruptBent(t *testing.T, bend func(*exec.Cmd), ready func(stdout string) bool, sig unix.Signal, args ...string) outcome {
	t.Helper()
	cmd := exec.Command(program, patient(t, args...)...)
	cmd.Dir = t.TempDir()
	var stdout, stderr watched
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	bend(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for i := 0; !ready(stdout.String()); i++ {
		if time.Sleep(20 * time.Millisecond); i > 1000 {
			break
		}
	}
	cmd.Process.Signal(sig)
	limit := time.AfterFunc(3*time.Second, func() {
		t.Errorf("%q goes on after %v", args, sig)
		cmd.Process.Kill()
	})
	defer limit.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// A signal while the capture, or the first of a series, waits for the machine: no snapshot, no file, a
// message.
func TestInterrupt(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	needRoot(t)
	unlock, err := snapshot.LockMachine(t.Context(), testneed.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGTERM} {
		for _, series := range [][]string{nil, {"--count", "5"}} {
			dir := t.TempDir()
			o := interrupt(t, "", sig, append([]string{"take", "-o", filepath.Join(dir, "x"), "--engine", "pull"}, series...)...)
			o.want(t, exitFailed, "interrupted")
			onlyFile(t, dir)
		}
	}
}

// A second signal kills at once, whatever still hangs.
func TestSecondSignal(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	if os.Getenv("STACKSHOT_TEST_HANGS") != "" {
		untilInterrupted(context.Background())
		fmt.Println("hangs")
		time.Sleep(30 * time.Second)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSecondSignal$")
	cmd.Env = append(os.Environ(), "STACKSHOT_TEST_HANGS=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "hangs\n" {
		t.Errorf("the child says %q, %v", line, err)
	}
	cmd.Process.Signal(unix.SIGINT)
	time.Sleep(300 * time.Millisecond)
	if cmd.Process.Signal(unix.Signal(0)) != nil {
		t.Error("the first signal already killed it")
	}
	began := time.Now()
	for range 20 {
		cmd.Process.Signal(unix.SIGINT)
		time.Sleep(10 * time.Millisecond)
	}
	cmd.Wait()
	if st := cmd.ProcessState.Sys().(syscall.WaitStatus); !st.Signaled() || st.Signal() != unix.SIGINT {
		t.Errorf("ended with %v", cmd.ProcessState)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}

// Whose turn does not come in time says who has it, and which option sets the time.
func TestLineIsTooLong(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	needRoot(t)
	unlock, err := snapshot.LockMachine(t.Context(), testneed.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	file := filepath.Join(t.TempDir(), "file")
	o := stackshot(t, "take", "--lock-wait", "300ms", "-o", file)
	o.want(t, exitFailed, "another capture is under way", fmt.Sprintf("pid %d (", os.Getpid()), "waited 300ms: --lock-wait")
	onlyFile(t, filepath.Dir(file))
	help := stackshot(t, "take", "--help")
	if line := strings.Join(strings.Fields(help.stdout), " "); !strings.Contains(line, "--lock-wait duration longest time to wait in line") || !strings.Contains(line, "one at a time stops the machine (default 5s)") {
		t.Errorf("help does not tell of it: %s", help.stdout)
	}
}

// held runs the command with every helper process of it held between clone and exec,
// on one P, and gives what it came to and how many were held.
func held(t *testing.T, args ...string) (outcome, int) {
	t.Helper()
	needRoot(t)
	var hold *testdelay.Hold
	o := invocation{bend: func(c *exec.Cmd) {
		c.Env = append(c.Environ(), "GOMAXPROCS=1")
		hold = testdelay.HoldExec(t, c)
	}}.run(t, args...)
	n := hold.Held()
	if left := hold.Left(); len(left) > 0 {
		t.Errorf("left after the hold: %v", left)
	}
	return o, n
}

// No helper process begins: the capture ends within its limits, with its names and its
// file, which it writes itself and says so.
func TestHeldStart(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	dir := t.TempDir()
	o, n := held(t, "take", "-o", dir+"/file")
	o.want(t, exitWhole, "without a helper process", "did not begin")
	if n == 0 {
		t.Error("nothing was held: the test proves nothing")
	}
	if o.took > 25*time.Second { // the machine's lock is waited for
		t.Errorf("took %v", o.took)
	}
	mode0600(t, dir+"/file")
	onlyFile(t, dir, "file")
}

// Where the target may hang too, no thread of ours goes there: the snapshot is in
// memory, and a message says so.
func TestHeldStartAndStalledTarget(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	stall(t, stallAll, func(t *testing.T, dir string) {
		o, _ := held(t, "take", "-o", dir+"/file")
		o.want(t, exitIncomplete, "did not begin", "fuse.stalled")
		mode0600(t, o.spared(t))
	})
}

// A signal while a start is held is answered at once.
func TestInterruptHeldStart(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	needRoot(t)
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		var hold *testdelay.Hold
		began := time.Now()
		o := interruptBent(t, func(c *exec.Cmd) { hold = testdelay.HoldExec(t, c) }, func(string) bool { return hold.Held() > 0 },
			sig, "take", "-o", t.TempDir()+"/file")
		if o.want(t, exitFailed, "interrupted"); !strings.Contains(o.stderr, sig.String()) {
			t.Errorf("%v: %s", sig, o.stderr)
		}
		t.Logf("%v: %v in all", sig, time.Since(began))
		if left := hold.Left(); len(left) > 0 {
			t.Errorf("left after the hold: %v", left)
		}
	}
}

// fullPipe is one that takes nothing more and that nobody reads.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	r, w := os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	for {
		if _, err := unix.Write(fds[1], make([]byte, 4096)); errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	if err := unix.SetNonblock(fds[1], false); err != nil { // for the command, which has it too
		t.Fatal(err)
	}
	return w
}

// Whoever does not read the report, or what is said, costs neither the file nor the
// answer to a signal.
func TestNobodyReads(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	t.Parallel()
	needRoot(t)
	for name, args := range map[string][]string{"report": nil, "json": {"--json"}, "messages": {"--self"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := t.TempDir() + "/file"
			cmd := exec.Command(program, patient(t, append([]string{"take", "--engine", "procfs", "-o", file}, args...)...)...)
			if cmd.Stdout = fullPipe(t); name == "messages" {
				cmd.Stdout, cmd.Stderr = nil, fullPipe(t)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			err := testtask.WaitFor(20*time.Second, func() (bool, error) {
				_, err := os.Lstat(file)
				return err == nil, nil
			})
			if err != nil {
				t.Error("no file:", err)
			}
			time.Sleep(300 * time.Millisecond) // until it says so
			cmd.Process.Signal(unix.SIGTERM)
			began := time.Now()
			limit := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
			defer limit.Stop()
			cmd.Wait()
			if d := time.Since(began); d > 10*time.Second || cmd.ProcessState.ExitCode() < 0 {
				t.Errorf("after the signal: %v, %v", d, cmd.ProcessState)
			}
			mode0600(t, file)
		})
	}
}
