package snapshot

import (
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/engine"
	"stackshot/internal/engine/pull"
	"stackshot/internal/engine/stop"
	"stackshot/internal/engine/trap"
	"stackshot/internal/testneed"
)

var stoppingEngines = []string{EnginePull, EngineTrap}

// recordsMemory is the memory of an engine that stops the machine.
func recordsMemory(t *testing.T, s *Session) *engine.Memory {
	t.Helper()
	switch e := s.engine.(type) {
	case *pull.Engine:
		return e.Mem
	case *trap.Engine:
		return e.Mem
	}
	t.Fatalf("engine %T", s.engine)
	return nil
}

// After Prepare the first capture finds its memory as it is, and so do all that
// follow: a session does not shrink.
func TestPrepare(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	// Of one thread: a task with many more than the average wants more than the whole machine.
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Process.Kill(); child.Wait() })
	for _, engine := range stoppingEngines {
		s := ownSession(t, Options{Engine: engine})
		if err := s.Prepare(Request{}); err != nil {
			t.Fatal(err)
		}
		ready := recordsMemory(t, s)
		if ready == nil {
			t.Fatalf("%s: no memory", engine)
		}
		for range 3 {
			res, _, _ := captureOnce(t, s, Request{Pids: []int{child.Process.Pid}})
			mem := recordsMemory(t, s)
			switch {
			case len(res.CPUs.Missing) > 0: // who is late may still write to the memory, so the next capture has other
				ready = nil
			case ready == nil:
				ready = mem
			case mem != ready || res.Tries != 1:
				t.Errorf("%s: the first captures have other memory, %d tries: %d bytes for %d tasks, and %d for %d; CPUs %+v",
					engine, res.Tries, len(mem.Data), mem.Queue.Capacity(), len(ready.Data), ready.Queue.Capacity(), res.CPUs)
			}
		}
		big := recordsMemory(t, s)
		for range 2 { // whatever the machine does meanwhile, memory only grows
			captureOnce(t, s, Request{})
			mem := recordsMemory(t, s)
			if len(mem.Data) < len(big.Data) || mem.Queue.Capacity() < big.Queue.Capacity() {
				t.Errorf("%s: shrunk from %d to %d bytes", engine, len(big.Data), len(mem.Data))
			}
			big = mem
		}
		if err := s.Prepare(Request{Pids: []int{-1}}); err == nil {
			t.Errorf("%s: prepared for task -1", engine)
		}
		s.Close()
		if err := s.Prepare(Request{}); err != ErrClosed {
			t.Errorf("%s: closed: %v", engine, err)
		}
	}
}

// Without settling the capture is as whole; with Prompt the hook is attached
// between captures, and not armed.
func TestPromptAndNoSettle(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	for _, engine := range stoppingEngines {
		for _, prompt := range []bool{false, true} {
			open := session
			if prompt {
				open = ownSession
			}
			s := open(t, Options{Engine: engine, Prompt: prompt})
			for _, noSettle := range []bool{true, false} {
				res, snap, _ := captureWhole(t, s, Request{NoSettle: noSettle})
				if res.Stopped <= 0 || len(snap.Tasks) == 0 {
					t.Errorf("%s: stopped %v, %d tasks", engine, res.Stopped, len(snap.Tasks))
				}
				p := s.team
				if hooked := p.Hooked != nil; p.Objects.OnSwitch != nil && hooked != prompt {
					t.Errorf("%s: prompt %v, but the hook is attached: %v", engine, prompt, hooked)
				}
				if p.Objects.Control.Armed != 0 {
					t.Errorf("%s: the hook is armed between captures", engine)
				}
			}
		}
	}
}

// Invariant 8: from quiet to loud no collection runs and none begins, whoever
// allocates.
func TestInvariant8NoCollectionWhileQuiet(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	var halt atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		var keep [64][]byte
		for i := 0; !halt.Load(); i++ {
			keep[i%len(keep)] = make([]byte, 64<<10)
			if i%64 == 0 {
				runtime.Gosched()
			}
		}
		runtime.KeepAlive(keep)
	}()
	defer func() { halt.Store(true); <-done }()
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	var before, after runtime.MemStats
	m := &stop.Team{}
	begun := 0
	for range 50 {
		m.QuietGC()
		runtime.ReadMemStats(&before)
		time.Sleep(2 * time.Millisecond)
		runtime.ReadMemStats(&after)
		m.RestoreGC()
		if before.NumGC != after.NumGC {
			begun++
		}
	}
	// One that had been decided on and was off its CPU all the while is nobody's to see.
	if begun > 1 {
		t.Errorf("collections while quiet, in %d of 50 rounds", begun)
	}
	if after.NumGC == 0 {
		t.Error("nothing was ever collected: the test shows nothing")
	}
}

// What the last census found stands in for /proc, and follows the machine up.
func TestScopeFollowsTheCensus(t *testing.T) {
	testneed.Live(t)
	s := ownSession(t, Options{Engine: EngineProcfs})
	first, err := s.wholeMachine()
	if err != nil {
		t.Fatal(err)
	}
	c := &capture.Raw{SeenTasks: 7, WholeCensus: true}
	s.remember(scope{threads: first.threads - 100}, c)
	sc, err := s.wholeMachine()
	if err != nil {
		t.Fatal(err)
	}
	if grown := sc.threads - (first.threads - 100); sc.tasks != 7+max(grown, 0) || sc.threads == 0 {
		t.Errorf("%d tasks, %d threads after 7 tasks, %d threads", sc.tasks, sc.threads, first.threads-100)
	}
	s.remember(scope{pids: []bpf.CensusEntry{{Tgid: 1, Threads: 1}}, threads: 1}, &capture.Raw{SeenTasks: 1, WholeCensus: true})
	s.remember(scope{threads: 1}, &capture.Raw{SeenTasks: 1}) // cut off
	if s.last.tasks != 7 {
		t.Errorf("the census of a part is kept: %d tasks", s.last.tasks)
	}
}
