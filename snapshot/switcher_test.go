package snapshot

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

// A switcher is this test binary once more: two threads of it pass a byte to and
// fro on the CPU that this variable names, which switches as often as it can.
const switcherEnv = "STACKSHOT_TEST_SWITCHER"

// maybeSwitcher is called by TestMain. The switcher ends with its standard input.
func maybeSwitcher() {
	cpu, err := strconv.Atoi(os.Getenv(switcherEnv))
	if err != nil {
		return
	}
	var there, back [2]int
	for _, p := range []*[2]int{&there, &back} {
		if err := unix.Pipe(p[:]); err != nil {
			panic(err)
		}
	}
	go pass(cpu, there[0], back[1])
	go pass(cpu, back[0], there[1])
	unix.Write(there[1], []byte{0})
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func pass(cpu, from, to int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		panic(err)
	}
	for b := []byte{0}; ; {
		unix.Read(from, b)
		unix.Write(to, b)
	}
}

// Threads that come and go on a CPU that is left running have a whole stack, or
// none and a word why: never what was unwound while they ran.
func TestIsolatedCPUSwitches(t *testing.T) {
	testneed.Live(t)
	cpu, _ := isolatedCPU(t)
	forEngines(t, func(t *testing.T, engine string) {
		c := startChild(t, again(nil, fmt.Sprint(switcherEnv, "=", cpu)), "ready")
		s := session(t, Options{Engine: engine})
		whole, running, sampled := 0, 0, 0
		const captures = 6
		for n := 0; n < captures; n++ {
			_, snap, _ := captureOnce(t, s, Request{Pids: []int{c.pid}})
			for _, th := range tasksByID(snap)[uint64(c.pid)].Threads {
				if int(th.Linux.CPU) != cpu {
					continue
				}
				stack := plain(t, snap, th)
				switch {
				case th.Sample != nil:
					sampled++
				case th.Linux.KstackErr == int32(unix.EBUSY) && len(stack) == 0:
					running++
				case isWhole(stack):
					whole++
				default:
					t.Errorf("thread %d: error %d, stack %v", th.ID, th.Linux.KstackErr, stack)
				}
			}
		}
		t.Logf("%d captures: %d threads with a stack, %d that ran, %d sampled", captures, whole, running, sampled)
		if whole == 0 || running+sampled == 0 {
			t.Error("want some of both")
		}
	})
}

// isWhole: down to where user mode entered the kernel, by a call or an interrupt.
func isWhole(stack []string) bool {
	if len(stack) == 0 {
		return false
	}
	last := stack[len(stack)-1:]
	return has(last, "entry_SYSCALL_64_after_hwframe", "el0t_64_sync") || interruptEntry(last[0])
}
