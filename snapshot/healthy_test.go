package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	// The same eyes see a hang.
	t.Run("hangs", func(t *testing.T) {
		h := userlab.NewHangs(t).Start(t, userlab.Glibc, "abba")
		time.Sleep(1100 * time.Millisecond)
		_, file, err := takeStopped(t, session(t, Options{}), Request{})
		if err != nil {
			t.Fatal(err)
		}
		snap, err := kcdata.ParseSnapshot(file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, d := range waitgraph.Judge(waits.Of(snap), waitgraph.Options{}).Deadlocks {
			found = found || d.Cycle[0].Task.ID == uint64(h.Pid) && !otherTests(snap)[uint64(h.Pid)]
		}
		if !found {
			t.Error("a deadlock is not seen")
		}
	})
}

// healthy makes captures of the whole machine, and says how many showed what is not there.
func healthy(t *testing.T) {
	requireBPF(t)
	s := session(t, Options{})
	captures := testneed.Length(20, 200)
	deadlocks, culprits, convoys, threads := 0, 0, 0, 0
	for range captures {
		_, file, err := takeStopped(t, s, Request{})
		if err != nil {
			t.Fatal(err)
		}
		snap, err := kcdata.ParseSnapshot(file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		threads += len(threadsByID(snap))
		v := waitgraph.Judge(waits.Of(snap), waitgraph.Options{})
		other := otherTests(snap)
		for _, d := range v.Deadlocks {
			if !other[d.Cycle[0].Task.ID] {
				deadlocks++
				t.Errorf("deadlock (%s) of %s", d.Confidence, cycleOf(d))
			}
		}
		for _, c := range v.Culprits {
			if c.Owner.Task == nil || !other[c.Owner.Task.ID] {
				culprits++
				t.Errorf("culprit %s: %s", culpritOf(c), c.Reason)
			}
		}
		convoys += len(v.Convoys)
	}
	t.Logf("%d captures of %d threads on average: %d deadlocks, %d culprits, %d convoys",
		captures, threads/captures, deadlocks, culprits, convoys)
}

func cycleOf(d *waitgraph.Deadlock) string {
	var s []string
	for _, w := range d.Cycle {
		s = append(s, fmt.Sprintf("%s %d (%s)", w.Thread.Name, w.Thread.ID, w.Kind))
	}
	return strings.Join(s, " -> ")
}

func culpritOf(c *waitgraph.Culprit) string {
	text := fmt.Sprintf("%d of %d, %d victims", c.Owner.Tid, c.Owner.Pid, len(c.Victims))
	if c.Owner.Thread != nil {
		text = c.Owner.Thread.Name + " " + text
	}
	if c.Wait != nil {
		text += fmt.Sprintf(", waits for %s", c.Wait.Kind)
	}
	for _, v := range c.Victims[:min(1, len(c.Victims))] {
		text += fmt.Sprintf(", first %s %d for %s", v.Thread.Name, v.Thread.ID, v.Kind)
	}
	return text
}

// otherTests are the tasks that other test binaries have made, which may hang as they
// please: tests of several packages run at once. Tasks are known by what made them.
func otherTests(snap *kcdata.Snapshot) map[uint64]bool {
	tasks := tasksByID(snap)
	other := map[uint64]bool{}
	for id, task := range tasks {
		for range len(tasks) {
			if task == nil || task.ID == uint64(os.Getpid()) {
				break
			}
			if strings.HasSuffix(taskName(task), ".test") {
				other[id] = true
			}
			task = tasks[uint64(task.Linux.Ppid)]
		}
	}
	return other
}

func taskName(task *kcdata.Task) string {
	if len(task.Cmdline) > 0 {
		return filepath.Base(task.Cmdline[0])
	}
	return task.Name
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
