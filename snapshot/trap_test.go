package snapshot

import (
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/engine/trap"
	"stackshot/internal/testtask"
)

// trapSession opens engine trap, for tests that change it; where the kernel has it not, the test is none.
func trapSession(tb testing.TB, o Options) (*Session, *trap.Engine) {
	tb.Helper()
	requireTrap(tb)
	o.Engine = EngineTrap
	if o.Latency == "" {
		o.Latency = LatencyOff // durations differ by nature, and sections are compared
	}
	s := ownSession(tb, o)
	return s, s.engine.(*trap.Engine)
}

func stopAll(tb testing.TB, f *testtask.Fixture) {
	tb.Helper()
	for _, c := range f.Children {
		if err := unix.Kill(c.Pid, unix.SIGSTOP); err != nil {
			tb.Fatal(err)
		}
		for _, tid := range c.Tids {
			awaitStop(tb, c.Pid, tid)
		}
	}
}
