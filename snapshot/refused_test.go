package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/engine"
	"stackshot/internal/testneed"
)

// inChild runs the calling test again in a process of its own, which the
// attributes put under restrictions, without some capabilities. True: this is that
// process.
func inChild(t *testing.T, attr *syscall.SysProcAttr, without ...uintptr) bool {
	t.Helper()
	if os.Getenv("STACKSHOT_TEST_CHILD") == t.Name() {
		return true
	}
	requireBPF(t)
	var out bytes.Buffer
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "STACKSHOT_TEST_CHILD="+t.Name())
	cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = attr, &out, &out
	started := make(chan error)
	go func() { started <- startWithout(cmd, without) }()
	err := <-started
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	skipLikeChild(t, out.String())
	return false
}

// skipLikeChild skips a test that a process of its own ran, and skipped: nobody else
// sees that one's words.
func skipLikeChild(t *testing.T, said string) {
	t.Helper()
	if strings.Contains(said, "--- SKIP: "+t.Name()) {
		t.Skipf("in a process of its own: %s", said)
	}
}

// startWithout starts a process that cannot have some capabilities: they are taken
// from the bounding set of this thread, which it inherits and which ends here.
func startWithout(cmd *exec.Cmd, capabilities []uintptr) error {
	runtime.LockOSThread() // never unlocked
	for _, c := range capabilities {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return cmd.Start()
}

// SCHED_FIFO refused: pull stops nobody; CPUs may come late to the trap, but those that come stand as
// still as ever. The file says both.
func TestFIFORefused(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	if inChild(t, nil, unix.CAP_SYS_NICE) {
		withoutFIFO(t)
	}
}

// A control group without a real-time budget refuses SCHED_FIFO to a process that
// has every capability. Without the first version's cpu controller no group can.
func TestFIFORefusedByControlGroup(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	const root = "/sys/fs/cgroup/cpu"
	if _, err := os.Stat(root + "/cpu.rt_runtime_us"); err != nil {
		t.Skipf("no group here can refuse SCHED_FIFO: %v", err)
	}
	testneed.Root(t)
	if os.Getenv("STACKSHOT_TEST_CHILD") == "" {
		dir, err := os.MkdirTemp(root, "stackshot-test-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(dir)
		t.Setenv("STACKSHOT_TEST_GROUP", dir)
	}
	if !inChild(t, nil) {
		return
	}
	procs := os.Getenv("STACKSHOT_TEST_GROUP") + "/cgroup.procs"
	if err := os.WriteFile(procs, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	for engineName, warning := range map[string]string{EngineTrap: "fifo_refused", EnginePull: "isolation_none"} {
		if engineName == EngineTrap && !trapHere() {
			continue
		}
		r, snap := openTest(t, Options{Engine: engineName, ArrivalBudget: slow(time.Second)}, engine.Hooks{}).mustTake(t)
		if !hasWarning(r, warning) || len(snap.Tasks) < 10 {
			t.Errorf("%s: %d tasks, warnings %v", engineName, len(snap.Tasks), r.Warnings)
		}
		for _, w := range r.Warnings {
			if w.Code == warning && !strings.Contains(w.Text, "RT_GROUP_SCHED") {
				t.Errorf("the warning does not name what refuses: %s", w.Text)
			}
		}
	}
}

// No BTF: pull names it, auto goes on with /proc and says why.
func TestNoBTF(t *testing.T) {
	testneed.Live(t)
	if !inChild(t, &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}) {
		return
	}
	hide(t, "/sys/kernel/btf")
	_, err := Open(Options{Engine: EnginePull})
	if !errors.Is(err, bpf.ErrUnsupported) || !strings.Contains(err.Error(), "BTF") {
		t.Errorf("pull without BTF: %v", err)
	}
	var file bytes.Buffer
	r, err := Take(context.Background(), patient(t, Options{}), Request{Output: &file})
	if err != nil {
		t.Fatal(err)
	}
	if r.Engine != EngineProcfs || r.Stopped != 0 || !hasWarning(r, "engine_procfs") || r.Tasks < 10 {
		t.Errorf("auto without BTF: %+v", r)
	}
}

func hide(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
}

// Without CAP_BPF and CAP_SYS_ADMIN pull names what the kernel refuses.
func TestNoRightsForBPF(t *testing.T) {
	testneed.Live(t)
	if !inChild(t, nil, unix.CAP_BPF, unix.CAP_SYS_ADMIN, unix.CAP_PERFMON) {
		return
	}
	if _, err := Open(Options{Engine: EnginePull}); !errors.Is(err, bpf.ErrUnsupported) || !errors.Is(err, unix.EPERM) {
		t.Errorf("pull without rights: %v", err)
	}
	r, err := Take(context.Background(), patient(t, Options{}), Request{})
	if err != nil || r.Engine != EngineProcfs {
		t.Errorf("auto without rights: %+v, %v", r, err)
	}
}

// In a pid namespace that is not the first, both engines see that namespace
// only, count as it counts, and say so.
func TestInnerPidNamespace(t *testing.T) {
	testneed.Live(t)
	if !inChild(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}) {
		return
	}
	if os.Getpid() != 1 {
		t.Fatalf("pid %d in the new namespace", os.Getpid())
	}
	hideProc(t)
	sleep := exec.Command("/bin/sleep", "30")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { sleep.Process.Kill(); sleep.Wait() }()
	seen := map[string]string{}
	for _, engine := range []string{EnginePull, EngineProcfs} {
		var file bytes.Buffer
		r, err := Take(context.Background(), patient(t, Options{Engine: engine}), Request{Output: &file})
		if err != nil {
			t.Fatal(err)
		}
		snap, err := parse(t, file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if snap.Machine.PidNSIsFirst != 0 || !hasWarning(r, "this_namespace_only") {
			t.Errorf("%s: first %d, warnings %v", engine, snap.Machine.PidNSIsFirst, r.Warnings)
		}
		for _, task := range snap.Tasks {
			if task.ID != capture.IdleTask {
				seen[engine] += fmt.Sprintf("%d %s leader %d ppid %d;", task.ID, task.Name, task.Threads[0].ID, task.Linux.Ppid)
			}
		}
	}
	want := fmt.Sprintf("1 %s leader 1 ppid 0;%d sleep leader %d ppid 1;", comm(t), sleep.Process.Pid, sleep.Process.Pid)
	for engine, got := range seen {
		if got != want {
			t.Errorf("%s sees %q, want %q", engine, got, want)
		}
	}
}

func hideProc(t *testing.T) {
	t.Helper()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
}

func comm(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// Memory pressure is read from the kernel's own words.
func TestMemoryPressureWords(t *testing.T) {
	pressure := "cpu some avg10=1.00 avg60=0.00\nmemory some avg10=90.00\nmemory full avg10=12.50 avg60=1.00 avg300=0.00 total=7"
	for _, c := range []struct{ text, begin, want string }{
		{pressure, "memory full avg10=", "12.50"},
		{"cpu some avg10=1.00", "memory full avg10=", ""},
		{"MemTotal: 1 kB\nMemAvailable:    2048 kB\n", "MemAvailable:", "2048"},
		{"MemTotal: 1 kB", "MemAvailable:", ""},
	} {
		if got := wordAfter(c.text, c.begin); got != c.want {
			t.Errorf("after %q: %q, want %q", c.begin, got, c.want)
		}
	}
}
