package stop

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/limits"
)

const FifoPriority = 99

// setFIFO gives this thread SCHED_FIFO 99. It is called before any pinning: a thread
// that is pinned behind somebody's FIFO task could not run to call it. Children do not
// inherit the policy.
func setFIFO() error {
	if err := limits.RealTime(); err != nil {
		return fmt.Errorf("SCHED_FIFO %d: %w", FifoPriority, err)
	}
	err := unix.SchedSetAttr(0, &unix.SchedAttr{
		Size:     unix.SizeofSchedAttr,
		Policy:   unix.SCHED_FIFO,
		Priority: FifoPriority,
		Flags:    unix.SCHED_FLAG_RESET_ON_FORK,
	}, 0)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("SCHED_FIFO %d: %w (needs CAP_SYS_NICE, and an RT budget under CONFIG_RT_GROUP_SCHED)", FifoPriority, err)
	}
	return err
}

func (g *Gate) setFIFO() error {
	if g.Hooks.NoFIFO {
		return errors.New("refused by the test")
	}
	return setFIFO()
}

// TryFIFO says why workers could not hold their CPUs; nil if they can. It asks
// on a thread made for it and ended after it.
func TryFIFO() error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- setFIFO()
	}()
	return <-done
}

// BlockPreemptionSignal blocks SIGURG for this thread: the runtime uses it to
// interrupt a goroutine that has run for 10 ms.
func BlockPreemptionSignal() {
	set := uint64(1) << (unix.SIGURG - 1)
	unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_BLOCK, uintptr(unsafe.Pointer(&set)), 0, 8, 0, 0)
}

// growStack makes the goroutine's stack as large as the window needs it, since a stack
// grows by allocating.
func growStack(depth int) byte {
	var room [2048]byte
	if depth < 16 {
		room[depth] = growStack(depth + 1)
	}
	return room[depth]
}
