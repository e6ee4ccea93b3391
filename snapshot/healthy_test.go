package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"stackshot/internal/hangscenes"
	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// TestHealthyMachineHasNoVerdict: 200 captures of a machine that contends for locks as it
// should and compiles, 200 of one that does nothing, and 200 of pipelines, servers with idle
// pools, a message bus and containers show no deadlock and no culprit.
func TestHealthyMachineHasNoVerdict(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	testneed.Slow(t)
	requireBPF(t)
	t.Run("contends", func(t *testing.T) {
		userlab.NewHangs(t).Start(t, userlab.Glibc, "healthy")
		if !userlab.Guest() {
			compileForEver(t)
		}
		healthy(t)
	})
	t.Run("idle", healthy)
	t.Run("answers", func(t *testing.T) {
		hangs := userlab.NewHangs(t)
		for name, steps := range userlab.Healthy() {
			hangs.StartHealthy(t, name, steps)
		}
		time.Sleep(1100 * time.Millisecond) // those that wait have waited for long
		healthy(t)
	})
	t.Run("hangs", func(t *testing.T) { // the same eyes see a hang
		h := userlab.NewHangs(t).Start(t, userlab.Glibc, "abba")
		time.Sleep(1100 * time.Millisecond)
		found := slices.ContainsFunc(judged(t, session(t, Options{})).Deadlocks, func(d *waitgraph.Deadlock) bool {
			return d.Cycle[0].Task.ID == uint64(h.Pid)
		})
		if !found {
			t.Error("a deadlock is not seen")
		}
	})
}

// judged is the verdict on the whole machine without what other tests made.
func judged(t *testing.T, s *Session) *waitgraph.Verdict {
	t.Helper()
	_, snap, _ := captureOnce(t, s, Request{})
	alone, without := hangscenes.Alone(snap)
	if len(alone.Tasks) < 10 || !slices.ContainsFunc(alone.Tasks, (*kcdata.Task).IsSelf) {
		t.Errorf("judged %d tasks, left %d to other tests", len(alone.Tasks), without)
	}
	return waitgraph.Judge(waits.Of(alone), waitgraph.Options{})
}

// healthy makes captures of the whole machine, and says how many showed what is not there.
func healthy(t *testing.T) {
	requireBPF(t)
	s := session(t, Options{})
	captures := testneed.Length(20, 200)
	deadlocks, culprits, convoys := 0, 0, 0
	for range captures {
		v := judged(t, s) // other tests hang as they please
		for _, d := range v.Deadlocks {
			deadlocks++
			t.Errorf("deadlock (%s) of %+v", d.Confidence, d.Cycle)
		}
		for _, c := range v.Culprits {
			culprits++
			t.Errorf("culprit %+v: %s, %d victims, first %+v", c.Owner, c.Reason, len(c.Victims), c.Victims[:min(1, len(c.Victims))])
		}
		convoys += len(v.Convoys)
	}
	t.Logf("%d captures: %d deadlocks, %d culprits, %d convoys", captures, deadlocks, culprits, convoys)
}

// compileForEver has gcc compile a small program again and again, until the test's end.
func compileForEver(t *testing.T) {
	testneed.Program(t, "gcc")
	source := filepath.Join(t.TempDir(), "a.c")
	var text bytes.Buffer
	for i := range 40 {
		fmt.Fprintf(&text, "int f%d(int a, int *b) { for (int i = 0; i < a; i++) b[i] = b[i / 2] * %d + a; return *b; }\n", i, i)
	}
	if err := os.WriteFile(source, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			exec.CommandContext(ctx, "gcc", "-O2", "-c", "-o", source+".o", source).Run()
		}
		done <- n
	}()
	t.Cleanup(func() {
		cancel()
		t.Logf("compiled %d times", <-done)
	})
	time.Sleep(50 * time.Millisecond) // or the first capture is of nothing
}
