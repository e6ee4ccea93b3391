package main

import (
	"syscall"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// A machine that stays armed, with a SysRq now and then, an hour in the long form, does not grow:
// neither the process, nor its files and mappings, nor the kernel's objects.
func TestArmStays(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	testneed.Slow(t)
	objects := bpfObjects(t)
	testtask.Start(t, testtask.Crowd(200)...)
	a := startArm(t, "--quiet", "--panic-pause", "5s") // an emulated machine is slow
	stay, pause := testneed.Length(20*time.Second, time.Hour), testneed.Length(time.Second, 20*time.Second)
	for range 3 { // the collector has its size then
		a.sysrq(t)
	}
	first, fds, mapped := stateOf(t, a.cmd.Process.Pid)
	armed, most, n := bpfObjects(t), first, 0
	for until := time.Now().Add(stay); time.Now().Before(until); time.Sleep(pause) {
		a.sysrq(t)
		n++
		rss, _, _ := stateOf(t, a.cmd.Process.Pid)
		most = max(most, rss)
		if n%15 == 0 {
			t.Logf("after %d captures: resident %d KiB", n, rss>>10)
		}
	}
	rss, fdsNow, mappedNow := stateOf(t, a.cmd.Process.Pid)
	t.Logf("%v, %d captures: resident %d KiB, at most %d, then %d; files %d, then %d; mapped %d, then %d", stay, n, first>>10, most>>10, rss>>10, fds, fdsNow, mapped, mappedNow)
	if rss > first+16<<20 || fdsNow > fds+2 || mappedNow > mapped+2 {
		t.Error("it has grown")
	}
	waitForObjects(t, armed)
	a.end(t, syscall.SIGTERM).want(t, exitWhole, "refused by kernel.sysrq: 0")
	waitForObjects(t, objects)
}
