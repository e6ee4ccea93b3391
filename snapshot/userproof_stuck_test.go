//go:build linux

package snapshot

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/report"
	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// A process that holds its mmap_lock for ever, so that ps hangs on it, costs a
// capture one read of its maps, and has its stacks, named, all the same.
func TestUserProofLockedMap(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	requireBPF(t)
	const limit = 300 * time.Millisecond
	for _, engine := range userEngines() {
		t.Run(engine, func(t *testing.T) {
			s := session(t, Options{Engine: engine, ArrivalBudget: time.Second, ReadLimit: slow(limit)})
			own := []int{os.Getpid()}
			captureWhole(t, s, Request{Pids: own})
			began := time.Now()
			captureWhole(t, s, Request{Pids: own})
			without := time.Since(began)

			hung := userlab.LockedMap(t)
			began = time.Now()
			_, snap, file := captureOnce(t, s, Request{Pids: append(own, hung.Pid)})
			with := time.Since(began)
			t.Logf("%v without, %v with a process whose mmap_lock is held", without, with)
			// Maps, its namesake of the new build-ids, and the noise of a shared machine.
			if with > without+slow(2*limit+2*time.Second) {
				t.Errorf("the capture took %v, %v without the process", with, without)
			}
			named := named(t, snap, file)
			stuckStacks(t, named, hung)
			var text bytes.Buffer
			if err := report.Text(&text, named.Snapshot, report.Options{}); err != nil {
				t.Fatal(err)
			}
			for _, want := range append(slices.Clone(hung.Stack), "hold_beside", "[mapper", " hold") {
				if !strings.Contains(text.String(), want) {
					t.Errorf("the report does not say %q:\n%.2500s", want, text.String())
				}
			}
			hung.Close()
		})
	}
}

func stuckStacks(t *testing.T, p *proof, hung *userlab.Stalled) {
	t.Helper()
	beside := false
	for _, task := range p.Tasks {
		if task.ID != uint64(hung.Pid) {
			continue
		}
		if len(task.Cmdline) != 3 || task.Cmdline[2] != hung.FS.Path("never") || len(task.Mappings) < 2 || task.MapWalk == nil {
			t.Errorf("command line %q, %d mappings, walk %+v", task.Cmdline, len(task.Mappings), task.MapWalk)
		}
		for _, th := range task.Threads {
			got := physical(frames(task, th))
			names := make([]string, len(got))
			for i, f := range got {
				names[i] = f.Func
			}
			if th.ID == uint64(hung.Pid) {
				if len(names) < 1+len(hung.Stack) || !slices.Equal(names[1:1+len(hung.Stack)], hung.Stack) || th.UserWalk.Flags&kcdata.UserComplete == 0 {
					t.Errorf("the stack is %v, want %v behind the system call's wrapper (%s)", got, hung.Stack, note(th))
				}
			} else {
				beside = userlab.InOrder(got, hung.Beside)
			}
		}
	}
	if !beside {
		t.Errorf("no second thread in %v", hung.Beside)
	}
}
