//go:build linux && (amd64 || arm64)

package unwind

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// Programs as the distribution ships them, stripped and mostly without frame
// pointers, waiting for something: every thread complete, and as gdb has it.
func TestInstalledPrograms(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	for name, command := range map[string]string{
		"python3": "python3 -c 'import time; list(map(time.sleep, [1000]))'",
		"perl":    "perl -e 'sub f { my $n = shift; $n ? f($n - 1) : sleep 1000 } f(9)'",
		"sleep":   "sleep 1000",
		"node":    "node -e 'setTimeout(() => 0, 1e6)'",
	} {
		t.Run(name, func(t *testing.T) {
			testneed.Program(t, name)
			pid, tid := start(t, 'S', "sh", "-c", "echo $$; exec "+command)
			awaitRest(t, pid, name)
			for _, tid := range threads(t, pid) {
				k := take(t, pid, tid, 1<<20, 1000)
				r := k.process().Unwind(k.in)
				if r.Flags&kcdata.UserComplete == 0 {
					t.Errorf("thread %d: %s: flags %#x, stopped at %#x: %v", tid, brief(k.stack(r)), r.Flags, r.StopAddr, r.Err)
				}
				checkPrefixes(t, k, r)
			}
			k := take(t, pid, tid, 1<<20, 1000)
			r := k.process().Unwind(k.in)
			sameAsGDB(t, k, tid, r)
			t.Log(len(r.PCs), strings.TrimSpace(brief(k.stack(r))))
		})
	}
}

// awaitRest waits until a process is the program of that name, not a shell on its way
// there, and has not run for half a second.
func awaitRest(t *testing.T, pid int, name string) {
	t.Helper()
	last, since := "", time.Now()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		now := exe
		for _, tid := range threads(t, pid) {
			ran, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
			now += fmt.Sprintf("\n%d %s", tid, ran)
		}
		if now != last {
			last, since = now, time.Now()
		}
		if strings.HasPrefix(filepath.Base(exe), name) && time.Since(since) > 500*time.Millisecond {
			return
		}
	}
	t.Fatalf("%s does not come to rest: %s", name, last)
}
