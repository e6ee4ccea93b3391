package stop

import (
	"runtime"
	"stackshot/internal/clock"
	"stackshot/internal/testneed"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The way of reading, on two events that every machine has.
func TestCountersOfAGroup(t *testing.T) {
	testneed.Live(t)
	testneed.Root(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := openGroup(unix.Gettid(), unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK, unix.PERF_COUNT_SW_CONTEXT_SWITCHES)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	const spun = 3 * time.Millisecond
	c.begin()
	for end := clock.Nanotime() + int64(spun); clock.Nanotime() < end; {
	}
	clock.Nap(time.Millisecond)
	got := c.end()
	for n := 0; n < 20 && got.instrs == 0; n++ { // counting begins when the kernel has told every CPU
		clock.Nap(time.Millisecond)
		got = c.end()
	}
	if !got.has || got.cycles == 0 || got.instrs == 0 || got.instrs > 1000 {
		t.Errorf("%+v after %v of work and a nap", got, spun)
	}
	if again := c.end(); again.cycles <= got.cycles {
		t.Errorf("%d ns, later %d", got.cycles, again.cycles)
	}
	if n := testing.AllocsPerRun(100, func() { c.begin(); c.end() }); n != 0 {
		t.Errorf("reading allocates %v times", n)
	}
}
