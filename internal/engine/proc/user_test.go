package proc

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// The bytes of a thread that ran between the two looks are dropped; those of one that slept on
// are kept.
func TestRanMeanwhile(t *testing.T) {
	testneed.Live(t)
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	pid := cmd.Process.Pid
	fs := procfs.FS{}
	first := procfs.NewThreadReader(fs, threadFiles)
	r := &reader{engine: &Engine{proc: fs}, user: &userSide{bytes: 4096}, look: procfs.NewThreadReader(fs, again)}
	r.user.left.Store(int64(time.Minute))
	lx := &kcdata.LinuxThread{Tgid: uint32(pid)}
	asleep := func() *procfs.Thread {
		th, err := first.Read(pid, pid)
		if th == nil || th.Have&again != again {
			t.Skipf("not to be read here: %v", err)
		}
		return th
	}
	var kept bool
	for end := time.Now().Add(10 * time.Second); !kept && time.Now().Before(end); { // until it sleeps
		th, walk := asleep(), kcdata.LinuxUserWalk{}
		if !th.Syscall.InUserSpace() {
			continue
		}
		b, err := r.copyStack(lx, th, &walk)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			t.Skipf("may not be traced: %v", err)
		}
		kept = len(b) > 0 && int(walk.Bytes) == len(b) && walk.Flags&kcdata.UserMoved == 0
	}
	if !kept {
		t.Fatal("the stack of a process that sleeps was never had")
	}
	for name, change := range map[string]func(*procfs.Thread){
		"turns on a CPU": func(th *procfs.Thread) { th.Schedstat.Timeslices-- },
		"system call":    func(th *procfs.Thread) { th.Syscall.Nr++ },
	} {
		th, walk := asleep(), kcdata.LinuxUserWalk{}
		change(th)
		b, err := r.copyStack(lx, th, &walk)
		if err != nil || len(b) != 0 || walk.Bytes != 0 || walk.Flags&kcdata.UserMoved == 0 {
			t.Errorf("%s: %d bytes, flags %#x, %v", name, len(b), walk.Flags, err)
		}
	}
	r.user.left.Store(0)
	if _, err := r.copyStack(lx, asleep(), &kcdata.LinuxUserWalk{}); !errors.Is(err, errNoTime) {
		t.Errorf("without time: %v", err)
	}
}
