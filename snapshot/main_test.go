package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"stackshot/internal/bpf"
	"stackshot/internal/engine"
	"stackshot/internal/engine/trap"
	"stackshot/internal/testdelay"
	"stackshot/internal/testfiles"
	"stackshot/internal/testneed"
	"stackshot/internal/testread"
	"stackshot/internal/testtask"
	"stackshot/internal/topology"
	"stackshot/kcdata"
)

func TestMain(m *testing.M) {
	testtask.MaybeRun()
	testfiles.MaybeRun()
	testdelay.MaybeServe(ServeFiles)
	runMapper()
	maybePuppet()
	maybeSwitcher()
	trap.HoldBudget = slow(trap.HoldBudget)
	code := m.Run()
	if err := closePool(); err != nil {
		fmt.Println("the sessions that tests shared:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// bpfLoads tries once whether this kernel takes the programs from us.
var bpfLoads = sync.OnceValue(func() error {
	o, err := bpf.Load(bpf.Config{CPUs: 1, SelfTgid: uint32(os.Getpid())})
	if err != nil {
		return err
	}
	p, err := o.LoadPull()
	if err == nil {
		p.Close()
	}
	return errors.Join(err, o.Close())
})

// requireBPF skips a test that cannot be without root and BPF. With
// STACKSHOT_REQUIRE_BPF=1 it fails instead.
func requireBPF(tb testing.TB) {
	tb.Helper()
	testneed.Root(tb)
	if err := bpfLoads(); err != nil {
		testneed.Lacking(tb, "needs BPF: %v", err)
	}
}

// ownSession opens one for the length of the test.
func ownSession(tb testing.TB, o Options) *Session {
	tb.Helper()
	return hooked(tb, o, engine.Hooks{})
}

// hooked is a session with test hooks.
func hooked(tb testing.TB, o Options, h engine.Hooks) *Session {
	tb.Helper()
	needEngine(tb, o, h)
	s, err := open(patient(tb, o), h)
	if err != nil {
		tb.Fatalf("open %+v: %v", o, err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func needEngine(tb testing.TB, o Options, h engine.Hooks) {
	tb.Helper()
	if o.Engine == EngineTrap && !h.AnyClock { // with it the test wants the clock that others skip for
		requireTrap(tb)
	}
}

// takeStopped is Take, and again where the stop did not come about, if that may
// be the host's doing: it can keep a CPU away for longer than the others wait.
func takeStopped(tb testing.TB, s *Session, r Request) (res *Result, file bytes.Buffer, err error) {
	tb.Helper()
	for range 5 {
		file.Reset()
		r.Output = &file
		if res, err = s.Take(context.Background(), r); !errors.Is(err, engine.ErrNotStopped) {
			break
		}
		tb.Logf("once more: %v", err)
	}
	return res, file, err
}

// capture makes one capture and decodes it, and fails the test on an error of
// the capture or of the file.
func captureOnce(tb testing.TB, s *Session, r Request) (*Result, *kcdata.Snapshot, []byte) {
	tb.Helper()
	res, file, err := takeStopped(tb, s, r)
	if err != nil {
		tb.Fatalf("take %+v %v: %v", s.options, r.Pids, err)
	}
	snap, err := parse(tb, file.Bytes())
	if err != nil {
		tb.Fatalf("the file of %+v does not decode: %v", s.options, err)
	}
	if len(snap.Problems) > 0 {
		tb.Fatalf("the file of %+v contradicts itself: %q", s.options, snap.Problems)
	}
	return res, snap, file.Bytes()
}

// parsed counts the files of each test.
var parsed = map[string]int{}

// parse decodes a file, which Apple's decoder reads too: in short, of a test's first
// three files.
func parse(tb testing.TB, file []byte) (*kcdata.Snapshot, error) {
	tb.Helper()
	if parsed[tb.Name()]++; parsed[tb.Name()] <= testneed.Length(3, math.MaxInt) {
		testread.Want(tb, file)
	}
	return kcdata.ParseSnapshot(file)
}

// captureWhole is capture where anything less than a whole, unbroken one makes
// the comparison worthless. The machine is shared and noisy: six goes.
func captureWhole(tb testing.TB, s *Session, r Request) (*Result, *kcdata.Snapshot, []byte) {
	tb.Helper()
	res, snap, file := captureOnce(tb, s, r)
	for try := 0; try < 5 && (!res.Whole() || res.StopBroken > 0); try++ {
		res, snap, file = captureOnce(tb, s, r)
	}
	if !res.Whole() {
		tb.Fatalf("take %+v: CPUs %+v, left out %+v, warnings %+v", s.options, res.CPUs, res.LeftOut, res.Warnings)
	}
	return res, snap, file
}

// take and takeWhole are one capture of a session with such options.
func take(tb testing.TB, o Options, r Request) (*Result, *kcdata.Snapshot, []byte) {
	tb.Helper()
	return captureOnce(tb, session(tb, o), r)
}

func takeWhole(tb testing.TB, o Options, r Request) (*Result, *kcdata.Snapshot, []byte) {
	tb.Helper()
	return captureWhole(tb, session(tb, o), r)
}

// tasksByID and threadsByID index a file.
func tasksByID(s *kcdata.Snapshot) map[uint64]*kcdata.Task {
	m := map[uint64]*kcdata.Task{}
	for _, t := range s.Tasks {
		m[t.ID] = t
	}
	return m
}

func threadsByID(s *kcdata.Snapshot) map[uint64]*kcdata.Thread {
	m := map[uint64]*kcdata.Thread{}
	for _, t := range s.Tasks {
		for _, th := range t.Threads {
			m[th.ID] = th
		}
	}
	return m
}

// pidsOf are the thread groups of a fixture that the stage made.
func pidsOf(f *testtask.Fixture) []int {
	var out []int
	for i := range f.Children {
		if f.Children[i].Kind != testtask.KernelThread {
			out = append(out, f.Children[i].Pid)
		}
	}
	return out
}

// A test of more than one CPU means nothing on one.
func requireTwoCPUs(t *testing.T) {
	t.Helper()
	top, err := topology.Machine()
	if err != nil {
		t.Fatal(err)
	}
	online := 0
	for _, c := range top.CPUs {
		if c.Online {
			online++
		}
	}
	if online < 2 || runtime.NumCPU() < 2 {
		t.Skip("one CPU: nothing to compare")
	}
}

// compiled is the program of a C source.
func compiled(tb testing.TB, source string, flags ...string) (bin string) {
	tb.Helper()
	testneed.Program(tb, "gcc")
	bin = filepath.Join(tb.TempDir(), "program")
	if err := os.WriteFile(bin+".c", []byte(source), 0o600); err != nil {
		tb.Fatal(err)
	}
	if out, err := exec.Command("gcc", append(flags, "-o", bin, bin+".c")...).CombinedOutput(); err != nil {
		tb.Fatalf("gcc: %v\n%s", err, out)
	}
	return bin
}
