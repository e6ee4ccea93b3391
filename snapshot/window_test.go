package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/engine/pull"
	"stackshot/internal/engine/trap"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/workqueue"
)

// Recording a task allocates nothing in Go: the worker's own path, run on this
// thread with nothing stopped.
func TestInvariant1NothingAllocates(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	f := testtask.Start(t, testtask.ManyThreads(60))
	s := openTest(t, Options{}, engine.Hooks{})
	p := s.engine.(*pull.Engine)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pinHere(t, s.plan.Main)
	tr, err := p.PrepareTry(engine.Job{Size: s.firstSize(scope{tasks: 200, threads: 20000}), Pause: time.Minute}, s.team.Workers)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.CloseCensus()
	tr.State.Begin(1)
	tr.State.Arrive(true)
	w := s.team.Workers[0]
	did := p.Recordings[w.Slot]
	it := workqueue.Item{Tgid: int32(f.Children[0].Pid), Count: 60}
	by := clock.Nanotime() + int64(time.Minute)
	runs := 0
	allocs := testing.AllocsPerRun(100, func() {
		runs++
		before := w.Stamp
		w.Switched()
		tr.Record(w, it, by)
		w.Switched()
		w.Stamp = before
	})
	if allocs != 0 {
		t.Errorf("%v allocations for one task", allocs)
	}
	if len(did.Parts) != runs || len(did.Failed) != 0 || did.Parts[0].Threads != 60 {
		t.Errorf("%d runs recorded %d parts, %d failures: %+v", runs, len(did.Parts), len(did.Failed), did.Failed)
	}
}

// pinHere puts this thread on one CPU until the test's end.
func pinHere(t *testing.T, cpu int) {
	t.Helper()
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.SchedSetaffinity(0, &before) })
}

// A buffer that is too small costs tries, never tasks, and the session stays as large as it became.
func TestInvariant5SpaceRunsOut(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	testtask.Start(t, testtask.ManyThreads(800), testtask.Bystanders(100))
	forEngines(t, func(t *testing.T, engineName string) {
		s := session(t, Options{Engine: engineName, Buffer: engine.MinBuffer})
		r, _, _ := captureWhole(t, s, Request{})
		if r.Tries < 2 || r.BufferSize <= 2*engine.MinBuffer {
			t.Errorf("from %d bytes: %d tries, %d bytes", engine.MinBuffer, r.Tries, r.BufferSize)
		}
		// Unless the machine grows as well, which it does not do each time.
		var again *Result
		for range 5 {
			if again, _, _ = captureWhole(t, s, Request{}); again.Tries == 1 || again.BufferSize < r.BufferSize {
				break
			}
		}
		if again.Tries != 1 || again.BufferSize < r.BufferSize {
			t.Errorf("a session that had grown to %d bytes took %d tries with %d", r.BufferSize, again.Tries, again.BufferSize)
		}
		if e, is := s.engine.(*trap.Engine); is && len(e.Retired) != 0 {
			t.Errorf("%d traps are kept", len(e.Retired))
		}
	})
}

// Bad options have one clear error that names the value.
func TestBadOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Engine: "magic"}, "--engine magic"},
		{Options{Buffer: 1}, "--buffer 1: below the minimum"},
		{Options{Buffer: 1 << 62}, "above the maximum"},
		{Options{MaxPause: -1}, "--max-pause"},
		{Options{ArrivalBudget: time.Hour}, "--arrival-budget 1h0m0s"},
		{Options{CPUs: "nonsense"}, "nonsense"},
		{Options{CPUs: "4000"}, "4000"},
		{Options{CPUClass: "0=X"}, "0=X"},
	} {
		if s, err := Open(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want an error with %q", c.o, err, c.want)
			if s != nil {
				s.Close()
			}
		}
	}
}

func TestBadRequests(t *testing.T) {
	testneed.Live(t)
	s, err := Open(patient(t, Options{Engine: EngineProcfs}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	if _, err := s.Take(ctx, Request{Since: 1}); !errors.Is(err, ErrDelta) {
		t.Errorf("since: %v", err)
	}
	if _, err := s.Take(ctx, Request{Pids: []int{1 << 30}}); !errors.Is(err, ErrNoTask) || !strings.Contains(err.Error(), "1073741824") {
		t.Errorf("a pid that is not there: %v", err)
	}
	var oe *engine.OptionError
	if _, err := s.Take(ctx, Request{Pids: []int{-1}}); !errors.As(err, &oe) {
		t.Errorf("a negative pid: %v", err)
	}
	if _, err := s.Take(ctx, Request{Output: failingWriter{}}); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "byte 0") {
		t.Errorf("an output that fails: %v", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, unix.ENOSPC }

// A capture needs less than 64 MiB, three times what it took, which is its file and
// the pieces of user stacks that it was made of, and twice the unwind tables of the
// programs that run here.
func TestResidentMemory(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	testneed.Slow(t)
	requireBPF(t)
	if os.Getenv("STACKSHOT_TEST_RSS") != "" {
		var file bytes.Buffer
		s := session(t, Options{})
		r, err := s.Take(t.Context(), Request{Output: &file})
		if err != nil {
			t.Fatal(err)
		}
		st, err := procfs.FS{}.Status(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		snap, err := parse(t, file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		raw := snap.UserTaken.Bytes + 16*snap.UserTaken.Links
		fmt.Printf("RSS %d %d %d\n", st.VmHWM, uint64(r.Bytes)+raw, s.images.Cost())
		return
	}
	testtask.Start(t, testtask.ManyThreads(4000))
	cmd := exec.Command(os.Args[0], "-test.run=^TestResidentMemory$", "-test.v")
	cmd.Env = append(os.Environ(), "STACKSHOT_TEST_RSS=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, line, _ := strings.Cut(string(out), "RSS ")
	words := strings.Fields(line)
	if len(words) < 3 {
		t.Fatalf("no figures in:\n%s", out)
	}
	peak, _ := strconv.ParseInt(words[0], 10, 64)
	size, _ := strconv.ParseInt(words[1], 10, 64)
	tables, _ := strconv.ParseInt(words[2], 10, 64)
	t.Logf("peak %d KiB for %d KiB, tables %d KiB", peak>>10, size>>10, tables>>10)
	if size < 2<<20 || peak > 3*size+2*tables+64<<20 {
		t.Errorf("peak %d bytes for %d bytes, tables %d", peak, size, tables)
	}
}

// A session that has grown stays grown, also when it then needs more room in
// another respect.
func TestGrownStaysGrown(t *testing.T) {
	m, err := engine.NewMemory(engine.Size{Bytes: 1 << 20, Tasks: 100, Chunk: engine.MinChunk, Clusters: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	for _, c := range []struct{ want, got engine.Size }{
		{engine.Size{Bytes: 1 << 20, Tasks: 100}, engine.Size{Bytes: 1 << 10, Tasks: 10}},
		{engine.Size{Bytes: 1 << 20, Tasks: 500}, engine.Size{Bytes: 1 << 10, Tasks: 500}},
		{engine.Size{Bytes: 8 << 20, Tasks: 100}, engine.Size{Bytes: 8 << 20, Tasks: 10}},
	} {
		if got := m.AtLeast(c.got); got.Bytes < c.want.Bytes || got.Tasks < c.want.Tasks {
			t.Errorf("%+v became %+v, want at least %+v", c.got, got, c.want)
		}
	}
	var none *engine.Memory
	if got := none.AtLeast(engine.Size{Bytes: 7}); got.Bytes != 7 {
		t.Errorf("without memory: %+v", got)
	}
}
