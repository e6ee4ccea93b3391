//go:build linux

package userlab

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var endsProgram = cProgram{"ends.c", "-O2 -g -pthread -Wno-unused-result"}

// endsPattern is of the directories of cases: sockets, FIFOs, files and mounts.
const endsPattern = "userlab-ends-"

// StartEnds starts a case of ends.c, and returns when /proc shows each role where its last
// step is to bring it. Steps are as ends.c says; "w*3 read f" are the steps of w0, w1 and w2.
func (hs *Hangs) StartEnds(tb testing.TB, name string, steps []string) *Hang {
	tb.Helper()
	h := hs.startEnds(tb, name, steps)
	h.Await(endsIn(spread(steps)))
	return h
}

// StartHealthy is StartEnds of processes that go on: nothing is asked of their states.
func (hs *Hangs) StartHealthy(tb testing.TB, name string, steps []string) *Hang {
	tb.Helper()
	h := hs.startEnds(tb, name, steps)
	h.nice0()
	return h
}

func (hs *Hangs) startEnds(tb testing.TB, name string, steps []string) *Hang {
	tb.Helper()
	dir, err := os.MkdirTemp("", endsPattern)
	if err != nil {
		tb.Fatalf("userlab: %v", err)
	}
	tb.Cleanup(func() { // after the processes, which run ends first
		if err := removeTree(dir); err != nil {
			tb.Errorf("userlab: end of %s: %v", name, err)
		}
	})
	bin := hs.build("ends", func(b *builder) string { return b.program(endsProgram) })
	p := run(tb, launch{name: name, argv: append([]string{bin, dir}, spread(steps)...), any: true})
	h := &Hang{Process: p, Case: name, Dir: dir}
	if err := h.cast(); err != nil {
		tb.Fatalf("userlab: %s: %v", name, err)
	}
	return h
}

// removeTree removes a directory of which nobody has a file open any more, and mounts in it
// first: what is behind them is not to be walked into.
func removeTree(dir string) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			if err := unix.Unmount(f[4], unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
				return err
			}
		}
	}
	return os.RemoveAll(dir)
}
