package collate

import (
	"testing"

	"stackshot/internal/capture"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// A redacted address tells its module's place in the list and its own place in the module, or
// a running number: never where the kernel lies.
func TestRedactedAddresses(t *testing.T) {
	n := &names{redact: true, mods: []procfs.Module{{Size: 1 << 40}, {Addr: 0x9000, Size: 0x1000}}, seen: map[uint64]uint64{}}
	for _, c := range []struct{ addr, want uint64 }{
		{0x9000, redactedModule | 1<<32}, {0x9fff, redactedModule | 1<<32 | 0xfff},
		{0x8fff, redactedUnknown | 1}, {0xa000, redactedUnknown | 2}, {0x10, redactedUnknown | 3}, {0x8fff, redactedUnknown | 1},
	} {
		if got := n.note(c.addr); got != c.want {
			t.Errorf("%#x is shown as %#x, want %#x", c.addr, got, c.want)
		}
	}
}

// A thread's number that another process has had since is not the thread that was sampled.
func TestSampleOfAnotherProcess(t *testing.T) {
	p := newPlacer(&capture.Raw{Samples: []capture.Sample{{Tid: 7, Tgid: 5}}}, &names{}, false)
	task := &taskBytes{linux: kcdata.LinuxTask{Tgid: 6}, threads: []threadAt{{id: 7}}}
	if err := p.place(task); err != nil || len(p.left) != 1 {
		t.Errorf("%v; %d samples wait for their thread, want 1", err, len(p.left))
	}
}
