//go:build linux && (amd64 || arm64)

package testtask

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

// A Child is a process of a fixture, in the state it was asked for.
type Child struct {
	Kind Kind
	Role string // "" for the process the kind is about
	Pid  int
	Tids []int // ascending
	Want Want

	role
	slot   *slot // nil when nothing was made
	reaped bool  // written by the goroutine that runs the test
}

// A Fixture is a set of processes. It is for the goroutine of its test, not
// safe for concurrent use.
type Fixture struct {
	Children []Child

	tb    testing.TB
	board *board
	life  *os.File // write end
	stage *exec.Cmd
	log   *os.File // standard error of the stage
	over  bool
}

// Start makes one set of processes per kind and returns when /proc shows each
// in its state. They end with the test. It fails the test, saying which process
// did not get where, when that takes longer than 20 seconds. Needs root. The
// processes inherit policy, affinity and limits of the calling thread.
func Start(tb testing.TB, kinds ...Kind) *Fixture {
	tb.Helper()
	testneed.Root(tb)
	f, err := newFixture(tb, kinds)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(f.Close)
	if err := f.start(kinds); err != nil {
		tb.Fatal(err)
	}
	return f
}

func newFixture(tb testing.TB, kinds []Kind) (*Fixture, error) {
	if !armed {
		return nil, fmt.Errorf("testtask: TestMain does not call testtask.MaybeRun")
	}
	f := &Fixture{tb: tb}
	n, err := countRoles(kinds)
	if err != nil {
		return nil, err
	}
	if f.board, err = newBoard(n); err != nil {
		return nil, err
	}
	slots := f.board.slots
	for _, k := range kinds {
		if k == KernelThread {
			cs, err := findKernelThreads()
			if err != nil {
				return nil, err
			}
			f.Children = append(f.Children, cs...)
			continue
		}
		rs, _ := k.roles() // countRoles has seen it
		for i, r := range rs {
			f.Children = append(f.Children, Child{Kind: k, Role: r.name, Want: r.want, role: r, slot: &slots[i]})
		}
		slots = slots[len(rs):]
	}
	return f, nil
}

func (f *Fixture) start(kinds []Kind) error {
	if err := f.runStage(kinds); err != nil {
		return err
	}
	deadline := time.Now().Add(settleTime)
	if err := f.settle(false, deadline); err != nil {
		return err
	}
	f.board.begin()
	return f.settle(true, deadline)
}

// runStage starts the stage and waits until it has made all actors.
func (f *Fixture) runStage(kinds []Kind) error {
	req, err := json.Marshal(kinds)
	if err != nil {
		return fmt.Errorf("testtask: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("testtask: life pipe: %w", err)
	}
	defer r.Close()
	f.life = w
	fd, err := unix.MemfdCreate("testtask-log", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("testtask: memfd_create: %w", err)
	}
	// Not a pipe: the actors inherit it, and a pipe would wait for them.
	f.log = os.NewFile(uintptr(fd), "testtask-log")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{stageEnv + "=" + string(req), "GOMAXPROCS=1", "GOGC=off", "GORACE=atexit_sleep_ms=0"}
	cmd.Stderr = f.log
	cmd.ExtraFiles = []*os.File{r, f.board.file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("testtask: stage: %w", err)
	}
	f.stage = cmd
	late := time.AfterFunc(settleTime, func() { cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("testtask: stage: %w: %s", err, f.logged())
	}
	return nil
}

func (f *Fixture) logged() string {
	b := make([]byte, 4096)
	n, _ := f.log.ReadAt(b, 0)
	return string(bytes.TrimSpace(b[:n]))
}

// Of gives the processes of a kind, in the order they were made.
func (f *Fixture) Of(k Kind) []*Child {
	var cs []*Child
	for i := range f.Children {
		if f.Children[i].Kind == k {
			cs = append(cs, &f.Children[i])
		}
	}
	return cs
}

// One gives the process that plays a role of a kind, the first if there are
// several. It fails the test when there is none.
func (f *Fixture) One(k Kind, role string) *Child {
	f.tb.Helper()
	for _, c := range f.Of(k) {
		if c.Role == role {
			return c
		}
	}
	f.tb.Fatalf("testtask: the fixture has no %v in role %q", k, role)
	return nil
}

func (c *Child) String() string {
	return strings.TrimSpace(fmt.Sprintf("%v %s", c.Kind, c.Role)) + fmt.Sprintf(" (pid %d)", c.Pid)
}

func (c *Child) pidNow() int {
	if c.slot == nil {
		return c.Pid
	}
	return int(atomic.LoadInt32(&c.slot.pid))
}

// steps gives the step the actor is in, and the one it is to stay in.
func (c *Child) steps() (at, last int32) {
	if c.slot == nil {
		return 0, 0
	}
	return atomic.LoadInt32(&c.slot.step), c.slot.last
}

// failure says where the actor gave up, if it did.
func (c *Child) failure() error {
	if c.slot == nil {
		return nil
	}
	errno := syscall.Errno(atomic.LoadInt32(&c.slot.errno))
	if errno == 0 {
		return nil
	}
	return fmt.Errorf("step %d of its program failed: %w", atomic.LoadInt32(&c.slot.step), errno)
}
