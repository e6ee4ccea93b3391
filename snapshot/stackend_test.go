package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// allMapsTexts is /proc/PID/maps of every process that has mappings.
func allMapsTexts() map[uint64]string {
	out := map[uint64]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, _ := strconv.ParseUint(filepath.Base(d), 10, 64)
		if text, _ := os.ReadFile(d + "/maps"); len(text) > 0 {
			out[pid] = string(text)
		}
	}
	return out
}

// stackEndIn is the end of the mapping that holds addr, if it may be read and
// written; 0: there is none.
func stackEndIn(text string, addr uint64) uint64 {
	for line := range strings.Lines(text) {
		var start, end uint64
		var perms string
		fmt.Sscanf(line, "%x-%x %s", &start, &end, &perms)
		if addr >= start && addr < end && strings.HasPrefix(perms, "rw") {
			return end
		}
	}
	return 0
}

// The end of the mapping that holds each thread's stack pointer is what /proc has.
func TestStackEndIsWhatProcSays(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	testneed.Slow(t)
	requireBPF(t)
	testtask.Start(t, testtask.Bystanders(20)) // a quiet machine has few
	forEngines(t, func(t *testing.T, engineName string) {
		s := openTest(t, Options{Engine: engineName, ArrivalBudget: time.Second}, engine.Hooks{})
		before := allMapsTexts()
		_, snap, _ := captureWhole(t, s, Request{})
		after, compared := allMapsTexts(), 0
		for _, task := range snap.Tasks {
			if before[task.ID] == "" || before[task.ID] != after[task.ID] {
				continue
			}
			for _, th := range task.Threads {
				if th.UserWalk == nil || th.Syscall == nil || th.UserWalk.Flags&kcdata.UserCompat != 0 {
					continue
				}
				if got, want := th.UserWalk.StackEnd, stackEndIn(after[task.ID], th.Syscall.SP); got != want {
					t.Errorf("thread %d of %s, sp %#x: stack ends at %#x, /proc says %#x", th.ID, task.Name, th.Syscall.SP, got, want)
				}
				compared++
			}
		}
		if compared < 20 {
			t.Errorf("%d threads compared", compared)
		}
		t.Logf("%d threads compared", compared)
	})
}
