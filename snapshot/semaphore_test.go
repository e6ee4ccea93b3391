package snapshot

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// consoleWriters are threads of this process that write to a virtual console each, without
// end: one after the other they take the console's semaphore (do_con_write), and the rest
// wait for it in D. They write nothing that shows.
func consoleWriters(t *testing.T, n int) map[uint64]bool {
	t.Helper()
	const first, disallocate = 40, 0x5608 // VT_DISALLOCATE
	var stop atomic.Bool
	var all sync.WaitGroup
	tids := make(chan int)
	t.Cleanup(func() {
		stop.Store(true)
		all.Wait()
	})
	writers := map[uint64]bool{}
	for i := range n {
		fd, err := unix.Open(fmt.Sprintf("/dev/tty%d", first+i), unix.O_WRONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Skipf("needs virtual consoles: %v", err)
		}
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			tids <- unix.Gettid()
			for nothing := make([]byte, 4096); !stop.Load(); {
				if _, err := unix.Write(fd, nothing); err != nil {
					t.Errorf("write to a console: %v", err)
					break
				}
			}
			unix.Close(fd)
			if tty, err := os.Open("/dev/tty0"); err == nil {
				unix.IoctlSetInt(int(tty.Fd()), disallocate, first+i)
				tty.Close()
			}
		})
		writers[uint64(<-tids)] = true
	}
	return writers
}

// Who waits for a semaphore of the kernel has it in its record, by the kernel's field or,
// without these, by the scan of its stack: the console's. On kernels that keep it, the
// thread that took it last is named, one of those who do.
func TestSemaphoreInTheWindow(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	requireBPF(t)
	needsNames(t)
	address, known := dataSymbol(t, "console_sem")
	if _, err := os.Stat("/dev/tty0"); err != nil {
		t.Skipf("needs virtual consoles: %v", err)
	}
	writers := consoleWriters(t, 6)
	for _, engineName := range userEngines() {
		for how, specs := range map[string]bpf.Specs{"as it is": bpftest.Knobs{}, "no fields": bpftest.Knobs{NoFields: true}} {
			s := openTest(t, Options{Engine: engineName, ArrivalBudget: time.Second, UserStacks: UserStacksOff}, engine.Hooks{Specs: specs})
			waiting, named, missed, keeps := 0, 0, 0, false
			locks := map[uint64]bool{}
			for try := 0; try < 30 && (waiting < 10 || keeps && named == 0); try++ {
				_, snap, _ := captureWhole(t, s, Request{Pids: []int{os.Getpid()}})
				for id, th := range threadsByID(snap) {
					w := th.Wait
					if !writers[id] || w == nil || w.Flags&(kcdata.WaitField|kcdata.WaitScanned) == 0 {
						continue
					}
					if w.Kind == 0 && w.Scan > kcdata.ScanNoPath { // just woken, and not yet running
						missed++
						continue
					}
					waiting++
					locks[w.Lock], keeps = true, keeps || w.Flags&kcdata.WaitLastHolder != 0
					if w.Kind != kcdata.LockSemaphore || w.Lock == 0 {
						t.Errorf("%s, %s: %+v, want a semaphore", engineName, how, w)
					}
					if w.OwnerTid != 0 {
						named++
						if !writers[uint64(w.OwnerTid)] || w.Flags&kcdata.WaitLastHolder == 0 {
							t.Errorf("%s, %s: %+v was not taken by a writer", engineName, how, w)
						}
					}
				}
			}
			t.Logf("%s, %s: %d waits, %d with an owner, %d in between", engineName, how, waiting, named, missed)
			if waiting < 10 || keeps && named == 0 || missed > waiting/4 || len(locks) != 1 || known && !locks[address] {
				t.Errorf("%s, %s: %d waits, %d in between; for %v, want %d", engineName, how, waiting, missed, locks, address)
			}
			s.Close()
		}
	}
}

// dataSymbol is where a variable of the kernel is, if the kernel names data.
func dataSymbol(t *testing.T, name string) (at uint64, known bool) {
	t.Helper()
	for line := range strings.Lines(slurp(t, "/proc/kallsyms")) {
		if rest, ok := strings.CutSuffix(strings.TrimSpace(line), " "+name); ok {
			var kind string
			_, err := fmt.Sscanf(rest, "%x %s", &at, &kind)
			return at, err == nil && at != 0
		}
	}
	return 0, false
}
