//go:build linux && (amd64 || arm64)

package testtask

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

func TestMain(m *testing.M) {
	MaybeRun()
	if os.Getenv(dieEnv) != "" {
		os.Exit(startAndDie())
	}
	os.Exit(m.Run())
}

// steady are the kinds that do not change under the eyes of a reader.
func (c *Child) steady() bool {
	return c.Kind != KernelThread && c.Kind.Name != exitStorm.Name
}

func TestI1TheStateLasts(t *testing.T) {
	testneed.Live(t)
	f := Start(t, All()...)
	time.Sleep(300 * time.Millisecond) // time: the longer, the more it proves
	for i := range f.Children {
		if c := &f.Children[i]; c.steady() {
			if _, err := c.Verify(); err != nil {
				t.Errorf("%v: %v", c, err)
			}
		}
	}
}

func pids(f *Fixture) []int {
	var ps []int
	for _, c := range f.Children {
		if c.Kind != KernelThread {
			ps = append(ps, c.Pid)
		}
	}
	return append(ps, f.stage.Process.Pid)
}

func wantGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if st, err := readStat(fmt.Sprintf("/proc/%d", pid)); err == nil && st.ppid != kthreaddPid {
			t.Errorf("pid %d is still there: %+v", pid, st)
		}
	}
}

// The ways in which a fixture comes to its end half made or half gone.
func TestI2NothingIsLeftOfAPart(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	t.Run("phase two never began", func(t *testing.T) {
		f, err := newFixture(t, All())
		if err != nil {
			t.Fatal(err)
		}
		err = f.runStage(All())
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		wantGone(t, pids(f))
	})
	t.Run("stage failed", func(t *testing.T) {
		f, err := newFixture(t, []Kind{Sleeping})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.runStage([]Kind{Sleeping, {Name: "no-such"}}); err == nil || !strings.Contains(err.Error(), "no-such") {
			t.Errorf("error of the stage: %v", err)
		}
		f.Close()
		wantGone(t, pids(f))
	})
	t.Run("some ended before", func(t *testing.T) {
		f := Start(t, All()...)
		for i := range f.Children {
			c := &f.Children[i]
			held := (c.Kind == MidExit || c.Kind == MutexWait || c.Kind == InodeWait) && c.Role != "owner"
			if (i%2 == 0 || c.within) && !held {
				if err := f.End(c); err != nil {
					t.Errorf("%v: %v", c, err)
				}
			}
		}
		f.Close()
		wantGone(t, pids(f))
	})
}

// Ending the owner of the mutex lets the held task finish its exit.
func TestMidExitEndsWithItsOwner(t *testing.T) {
	testneed.Live(t)
	f := Start(t, MidExit)
	if err := f.End(f.One(MidExit, "owner")); err != nil {
		t.Fatal(err)
	}
	if err := WaitFor(5*time.Second, f.One(MidExit, "").ended); err != nil {
		t.Fatalf("still in exit: %v", err)
	}
}

const dieEnv = "STACKSHOT_TESTTASK_DIE"

// startAndDie makes one of each kind, says who they are, and is killed.
func startAndDie() int {
	f, err := newFixture(nil, All())
	if err == nil {
		err = f.start(All())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(strings.Trim(fmt.Sprint(pids(f)), "[]"))
	unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

func TestI3ActorsDieWithTheTestProcess(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	// Orphans come to us, so that the test needs no init that reaps.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	orphans := orphansOfTheDead(t)
	if len(orphans) < len(All()) {
		t.Fatalf("only %d processes were made", len(orphans))
	}
	for _, pid := range orphans {
		err := WaitFor(10*time.Second, func() (bool, error) {
			if got, _ := unix.Wait4(pid, nil, unix.WNOHANG, nil); got == pid {
				return true, nil
			}
			_, err := readStat(fmt.Sprintf("/proc/%d", pid))
			return err != nil, nil // reaped by its own parent
		})
		if err != nil {
			st, _ := readStat(fmt.Sprintf("/proc/%d", pid))
			t.Errorf("pid %d survived: %+v: %v", pid, st, err)
		}
	}
	wantGone(t, orphans)
}

func orphansOfTheDead(t *testing.T) []int {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{dieEnv + "=1"}
	out, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Fatalf("the dying process: %v: %s", err, out)
	}
	var ps []int
	for f := range strings.FieldsSeq(string(out)) {
		var pid int
		if _, err := fmt.Sscan(f, &pid); err != nil {
			t.Fatalf("output %q: %v", out, err)
		}
		ps = append(ps, pid)
	}
	return ps
}

// A number that once was an actor's belongs to somebody else now.
func TestI4AReapedPidIsNotSignalled(t *testing.T) {
	testneed.Live(t)
	other := Start(t, Sleeping)
	f := Start(t, Sleeping, KernelThread)
	c := f.One(Sleeping, "")
	if err := f.End(c); err != nil {
		t.Fatal(err)
	}
	c.slot.pid = int32(other.Children[0].Pid)
	if err := f.End(c); err != nil {
		t.Error(err)
	}
	f.Close()
	if _, err := other.Children[0].Verify(); err != nil {
		t.Errorf("a process of another fixture: %v", err)
	}
}

func TestI6FailureNamesStepAndErrno(t *testing.T) {
	testneed.Live(t)
	k := Kind{Name: cpuHogs.Name, N: 1, CPU: 1023, Life: time.Second}
	f, err := newFixture(t, []Kind{k})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = f.start([]Kind{k})
	if err == nil || !strings.Contains(err.Error(), "cpu-hogs") || !strings.Contains(err.Error(), "step 2 ") || !strings.Contains(err.Error(), unix.EINVAL.Error()) {
		t.Errorf("error %v, want cpu-hogs, step 2 and EINVAL named", err)
	}
}
