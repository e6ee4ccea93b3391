package snapshot

import (
	"bytes"
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

func TestMain(m *testing.M) {
	testtask.MaybeRun()
	os.Exit(m.Run())
}

// bpfLoads tries once whether this kernel takes the programs from us.
var bpfLoads = sync.OnceValue(func() error {
	o, err := bpf.Load(bpf.Config{CPUs: 1, SelfTgid: uint32(os.Getpid())})
	if err != nil {
		return err
	}
	return o.Close()
})

// requireBPF skips a test that cannot be without root and BPF. With
// STACKSHOT_REQUIRE_BPF=1 it fails instead.
func requireBPF(tb testing.TB) {
	tb.Helper()
	give := tb.Skipf
	if os.Getenv("STACKSHOT_REQUIRE_BPF") == "1" {
		give = tb.Fatalf
	}
	if unix.Geteuid() != 0 {
		give("needs root")
	}
	if err := bpfLoads(); err != nil {
		give("needs BPF: %v", err)
	}
}

// take makes one capture and decodes it. It waits for captures of other test
// processes, and fails the test on an error of the capture or of the file.
func take(tb testing.TB, o Options, r Request) (*Result, *kcdata.Snapshot, []byte) {
	tb.Helper()
	if o.LockWait == 0 {
		o.LockWait = time.Minute
	}
	var file bytes.Buffer
	r.Output = &file
	res, err := Take(context.Background(), o, r)
	if err != nil {
		tb.Fatalf("take %+v %v: %v", o, r.Pids, err)
	}
	snap, err := kcdata.ParseSnapshot(file.Bytes())
	if err != nil {
		tb.Fatalf("the file of %+v does not decode: %v", o, err)
	}
	if len(snap.Problems) > 0 {
		tb.Fatalf("the file of %+v contradicts itself: %q", o, snap.Problems)
	}
	return res, snap, file.Bytes()
}

// takeWhole is take where anything less than a whole, unbroken capture makes
// the comparison worthless.
func takeWhole(tb testing.TB, o Options, r Request) (*Result, *kcdata.Snapshot, []byte) {
	tb.Helper()
	res, snap, file := take(tb, o, r)
	for try := 0; try < 5 && (!res.Whole() || res.StopBroken > 0); try++ { // the machine is shared and noisy
		res, snap, file = take(tb, o, r)
	}
	if !res.Whole() {
		tb.Fatalf("take %+v: CPUs %+v, left out %+v, warnings %+v", o, res.CPUs, res.LeftOut, res.Warnings)
	}
	return res, snap, file
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
