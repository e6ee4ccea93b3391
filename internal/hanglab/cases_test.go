//go:build linux && (amd64 || arm64)

package hanglab

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

func TestMain(m *testing.M) {
	testtask.MaybeRun()
	os.Exit(m.Run())
}

// What one try has started has ended before the next one begins.
func TestTryEndsWhatItStarted(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	l, c := New(t), Cases()[0]
	again := *c
	again.Alone = true
	var pids []int
	again.start = func(tb testing.TB, l *Lab) Cast {
		for _, pid := range pids {
			if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
				t.Errorf("process %d of the try before: %v", pid, err)
			}
		}
		cast := c.start(tb, l)
		pids = append(pids, cast["a"].Pid)
		return cast
	}
	errs := l.Try(t, &again, 0, func(*Running) (*Verdict, []error) { return &Verdict{}, nil })
	if len(pids) != 5 || len(errs) == 0 {
		t.Errorf("%d tries, errors %v; want 5 tries of an empty verdict", len(pids), errs)
	}
}
