package stop

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// counters count the CPU cycles and instructions of one worker's thread, the
// kernel's part of its work included. They exist only where the machine has a
// PMU and lets us use it. The coordinator makes them, and the worker reads them in its
// turn. The coordinator closes them when the thread has ended, since until then the
// worker may read.
type counters struct {
	lead, member  int
	before, after groupRead
}

// groupRead is what read(2) of a group of two gives, with read_format GROUP,
// TOTAL_TIME_ENABLED and TOTAL_TIME_RUNNING.
type groupRead struct {
	events, enabled, running, cycles, instrs uint64
}

// perfCost is what one turn cost. The worker writes it, and the coordinator reads it when
// the worker is done.
type perfCost struct {
	cycles, instrs uint64
	has            bool // else there is no PMU, or it had to be shared
}

// openCounters makes the counters of a thread of ours.
func openCounters(tid int) (*counters, error) {
	return openGroup(tid, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES, unix.PERF_COUNT_HW_INSTRUCTIONS)
}

func openGroup(tid int, kind uint32, lead, member uint64) (*counters, error) {
	c := &counters{lead: -1}
	var err error
	if c.lead, err = openCounter(tid, kind, lead, -1); err != nil {
		return nil, err
	}
	if c.member, err = openCounter(tid, kind, member, c.lead); err != nil {
		unix.Close(c.lead)
		return nil, err
	}
	return c, nil
}

func openCounter(tid int, kind uint32, config uint64, group int) (int, error) {
	attr := unix.PerfEventAttr{
		Type: kind, Config: config, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Read_format: unix.PERF_FORMAT_GROUP | unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
	}
	fd, err := unix.PerfEventOpen(&attr, tid, -1, group, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("counter %d of type %d, thread %d: %w", config, kind, tid, err)
	}
	return fd, nil
}

// read may be called in the window. A nil *counters reads nothing.
func (c *counters) read(into *groupRead) {
	if n, _, _ := unix.RawSyscall(unix.SYS_READ, uintptr(c.lead), uintptr(unsafe.Pointer(into)), unsafe.Sizeof(*into)); n != unsafe.Sizeof(*into) {
		*into = groupRead{}
	}
}

// begin notes the counts at the start of a turn; end takes the difference.
func (c *counters) begin() {
	if c != nil {
		c.read(&c.before)
	}
}

// end returns what was counted since begin. If the kernel gave the counters to somebody
// else for a part of the time, the counts are incomplete, and end returns none.
func (c *counters) end() perfCost {
	if c == nil {
		return perfCost{}
	}
	c.read(&c.after)
	a, b := &c.after, &c.before
	if a.events != 2 || b.events != 2 || a.running == b.running || a.enabled-b.enabled != a.running-b.running {
		return perfCost{}
	}
	return perfCost{cycles: a.cycles - b.cycles, instrs: a.instrs - b.instrs, has: true}
}

func (c *counters) close() {
	if c != nil {
		unix.Close(c.member)
		unix.Close(c.lead)
	}
}
