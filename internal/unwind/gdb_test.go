//go:build linux && (amd64 || arm64)

package unwind

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"stackshot/internal/testneed"
)

var gdbFrame = regexp.MustCompile(`(?m)^#\d+ +(?:0x([0-9a-f]+) in )?`)

// sameAsGDB compares the addresses of a stack with gdb's of the same blocked
// thread. gdb gives no address for the leaf, for a frame that a signal
// interrupted, and for the signal frame itself; a function inlined into another
// has its address again.
func sameAsGDB(t *testing.T, k *taken, tid int, r Result) {
	t.Helper()
	want := gdbStack(t, tid)
	if len(want) == 0 {
		return
	}
	i, without, skipped := 1, 0, 0
	for _, pc := range want[1:] {
		switch {
		case pc == 0:
			without++
			continue
		case pc == r.PCs[i-1] && (i == len(r.PCs) || pc != r.PCs[i]):
			continue
		}
		for i < len(r.PCs) && r.PCs[i] != pc {
			i, skipped = i+1, skipped+1
		}
		if i++; i > len(r.PCs) {
			break
		}
	}
	skipped += max(0, len(r.PCs)-i)
	if i > len(r.PCs) || skipped > without {
		t.Errorf("gdb has another stack\nours %s\ngdb  %#x\nours %#x", brief(k.stack(r)), want, r.PCs)
	}
}

func gdbStack(t *testing.T, tid int) []uint64 {
	t.Helper()
	if !testneed.Have(t, "gdb") {
		return nil // not compared with it
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "gdb", "-nx", "-p", strconv.Itoa(tid), "-batch",
		"-ex", "set backtrace past-main on", "-ex", "set print address on", "-ex", "bt")
	cmd.Env = append(cmd.Environ(), "DEBUGINFOD_URLS=")
	out, err := cmd.Output()
	if err != nil {
		t.Logf("gdb: %v", err)
		return nil
	}
	var pcs []uint64
	for _, m := range gdbFrame.FindAllSubmatch(out, -1) {
		pc, _ := strconv.ParseUint(string(m[1]), 16, 64)
		pcs = append(pcs, pc)
	}
	return pcs
}

// brief is a stack in a few words.
func brief(names []string) string {
	if len(names) > 40 {
		return fmt.Sprintf("%s … (%d more) … %s", strings.Join(names[:25], " "), len(names)-35, strings.Join(names[len(names)-10:], " "))
	}
	return strings.Join(names, " ")
}
