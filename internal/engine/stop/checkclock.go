package stop

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/clock"
	"stackshot/internal/timens"
)

// clockSlack bounds the difference between CLOCK_MONOTONIC and the clock that BPF
// programs read. That one can be read from an NMI too, so it may be a little behind or
// ahead (ktime_get_mono_fast_ns, kernel/time/timekeeping.c).
const clockSlack = int64(time.Millisecond)

// checkClock compares the clock by which Go writes deadlines with the clock by which
// BPF programs read them. If they differed, no stop would end when it should.
func checkClock(o *bpf.Objects) error {
	from := clock.Now()
	if err := ProbeCensus(o); err != nil {
		return err
	}
	to := clock.Now()
	for _, c := range []struct {
		name             string
		from, kernel, to uint64
		offset           int64
	}{
		{"CLOCK_MONOTONIC", from.Monotonic, o.Control.KtimeNs, to.Monotonic, timens.Monotonic},
		{"CLOCK_BOOTTIME", from.Boottime, o.Control.BootNs, to.Boottime, timens.Boottime},
	} {
		if int64(c.kernel-c.from) < -clockSlack || int64(c.kernel-c.to) > clockSlack {
			return fmt.Errorf("%w: this process's %s is not the kernel's: %v ahead of it, of which a time namespace (/proc/self/timens_offsets) explains %v",
				bpf.ErrUnsupported, c.name, time.Duration(int64(c.to-c.kernel)+c.offset), time.Duration(c.offset))
		}
	}
	return nil
}

// ProbeCensus runs the census over this process alone. It shows that iterators work,
// and the program leaves the depth of our pid namespace in Control.NsLevel, for the
// switch hook and the samples.
func ProbeCensus(o *bpf.Objects) error {
	var pass bpf.Iterator
	scope := bpf.TaskScope(uint32(unix.Getpid()))
	if errno := pass.Open(o.Census.FD(), &scope); errno != 0 {
		return fmt.Errorf("%w: task iterator: %w", bpf.ErrUnsupported, errno)
	}
	defer pass.Close()
	var e [bpf.CensusEntrySize]byte
	if n, errno := pass.Read(e[:]); errno != 0 || n != len(e) {
		return fmt.Errorf("%w: task iterator: %d bytes for this process, %v", bpf.ErrUnsupported, n, errno)
	}
	return nil
}
