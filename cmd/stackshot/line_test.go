package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/snapshot"
)

// Twenty captures at once, or in short four, wait in line: each has its file.
func TestTwentyAtOnce(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	needRoot(t)
	dir := t.TempDir()
	var wg sync.WaitGroup
	n := testneed.Length(4, 20)
	for i := range n {
		wg.Go(func() {
			o := stackshot(t, "take", "--arrival-budget", "250ms", "-q", "-o", fmt.Sprint(dir, "/", i))
			taken(t, o)
		})
	}
	wg.Wait()
	if files, _ := filepath.Glob(dir + "/*"); len(files) != n {
		t.Errorf("%d files", len(files))
	}
}

// Whose turn does not come in time says who has it, and which option sets the time.
func TestLineIsTooLong(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	needRoot(t)
	unlock, err := snapshot.LockMachine(context.Background(), testneed.Patience)
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
