package snapshot

import (
	"bufio"
	"fmt"
	"maps"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/waits"
)

// onLoan is the process that /proc/locks names for a lock of an open file description
// (OFD), which none owns.
const onLoan = -1

// lockWaiters are the "->" lines of /proc/locks: how many each process has. A lease that
// is being broken has none.
//
//	2: -> FLOCK  ADVISORY  WRITE 4711 00:01:2081 0 EOF
func lockWaiters(t *testing.T) map[int]int {
	t.Helper()
	n := map[int]int{}
	lines := bufio.NewScanner(strings.NewReader(slurp(t, "/proc/locks")))
	for lines.Scan() {
		_, waiter, waits := strings.Cut(lines.Text(), "-> ")
		if !waits {
			continue
		}
		var sort, mode, access string
		var pid int
		if _, err := fmt.Sscan(waiter, &sort, &mode, &access, &pid); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		n[pid]++
	}
	return n
}

// TestFileLocksAreThoseOfProc: who waits for a lock of flock, of fcntl and of an open file
// description is said to wait for a file lock of its holder, and on the whole machine nobody else
// is said to wait for one but those who do by /proc/locks.
func TestFileLocksAreThoseOfProc(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	requireBPF(t)
	needsNames(t)
	f := testtask.Start(t, testtask.FileLocks)
	s := session(t, Options{UserStacks: UserStacksOff})
	for try := 1; ; try++ {
		before := lockWaiters(t)
		_, snap, _ := captureWhole(t, s, Request{})
		w, after := waits.Of(snap), lockWaiters(t)
		if !maps.Equal(before, after) && try < 20 { // of somebody else's
			continue
		}
		for _, role := range []string{"flock", "posix", "ofd"} {
			x := waitsFor(w, f.One(testtask.FileLocks, role).Pid)
			holder := f.One(testtask.FileLocks, "holder").Pid
			if x == nil || x.Kind != waits.FileLock || len(x.Owners) != 1 || int(x.Owners[0].Pid) != holder || x.Owners[0].Relation != waits.Holds {
				t.Errorf("%s: %+v, want a file lock of %d", role, x, holder)
			}
		}
		found := map[int]int{}
		for _, x := range w.All {
			if x.Kind != waits.FileLock {
				continue
			}
			pid := int(x.Task.ID)
			if found[pid] == before[pid] {
				pid = onLoan
			}
			found[pid]++
		}
		if !maps.Equal(found, before) || before[onLoan] < 1 || before[f.One(testtask.FileLocks, "flock").Pid] != 1 || before[f.One(testtask.FileLocks, "posix").Pid] != 1 {
			t.Errorf("waiting by the file %v, by /proc/locks %v", found, before)
		}
		return
	}
}
