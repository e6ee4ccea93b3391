package bpf

import (
	"bytes"
	"errors"
	"fmt"
	"stackshot/internal/capture"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SampleFrames is how many frames each stack of a sample has at most.
const SampleFrames = len(CPUSample{}.Kernel)

// Samples is indexed by CPU number.
type Samples []CPUSample

// States of CPUSample.Wanted (enum sample_state) and flags (enum sample_flag).
const (
	sampleNone   = 0
	sampleWanted = 1
	sampleDone   = 3 // 2: the program is at it

	sampleUser = 1
	sampleIdle = 2
)

// Want asks the program for a sample of a CPU. False: the program has not finished the
// last request, or there is no such CPU.
func (s Samples) Want(cpu int) bool {
	if cpu >= len(s) {
		return false
	}
	w := &s[cpu].Wanted
	return atomic.CompareAndSwapUint32(w, sampleNone, sampleWanted) || atomic.CompareAndSwapUint32(w, sampleDone, sampleWanted)
}

// Take gives the sample of a CPU if it is there.
func (s Samples) Take(cpu int) (capture.Sample, bool) {
	m := &s[cpu]
	if atomic.LoadUint32(&m.Wanted) != sampleDone {
		return capture.Sample{}, false
	}
	comm, _, _ := bytes.Cut(m.Comm[:], []byte{0})
	out := capture.Sample{
		CPU: cpu, Tid: m.Tid, Tgid: m.Tgid, Comm: string(comm), Idle: m.Flags&sampleIdle != 0, User: m.Flags&sampleUser != 0,
		At: m.AtNs, IP: m.Ip, Kernel: frames(&m.Kernel, m.KernelBytes), UserStack: frames(&m.User, m.UserBytes),
	}
	atomic.StoreUint32(&m.Wanted, sampleNone)
	return out, true
}

func frames(of *[SampleFrames]uint64, size int32) []uint64 {
	n := min(max(int(size), 0)/8, len(of))
	return append([]uint64(nil), of[:n]...)
}

// GiveUp takes a request back. False: the program is writing the sample, or has written it.
func (s Samples) GiveUp(cpu int) bool {
	return atomic.CompareAndSwapUint32(&s[cpu].Wanted, sampleWanted, sampleNone)
}

// SampleEvent is the perf event that enters the program sample on one CPU. It
// is made disabled. Making it, enabling, disabling and closing it may send that
// CPU an interrupt and wait for its answer, with preemption off: not for a CPU
// that takes none, and not in the window.
type SampleEvent struct {
	CPU      int
	Hardware bool // counts cycles: its NMI sees loops with interrupts off too
	fd       int
}

const (
	samplePeriodNs     = 1_000_000
	samplePeriodCycles = 2_000_000 // a millisecond or less
)

// OpenSampleEvent makes the event of one CPU: cycles where the CPU counts them,
// else the clock. Errors are of kind ErrUnsupported.
func (o *Objects) OpenSampleEvent(cpu int) (*SampleEvent, error) {
	e := &SampleEvent{CPU: cpu, Hardware: true}
	var err error
	if e.fd, err = openEvent(unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES, samplePeriodCycles, cpu); err != nil {
		e.Hardware = false
		e.fd, err = openEvent(unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK, samplePeriodNs, cpu)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: perf event on CPU %d: %w", ErrUnsupported, cpu, err)
	}
	if err := unix.IoctlSetInt(e.fd, unix.PERF_EVENT_IOC_SET_BPF, o.Sample.FD()); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: attach sample to the perf event of CPU %d: %w", ErrUnsupported, cpu, err), e.Close())
	}
	return e, nil
}

func openEvent(kind uint32, config, period uint64, cpu int) (int, error) {
	attr := unix.PerfEventAttr{
		Type: kind, Config: config, Sample: period, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Bits: unix.PerfBitDisabled,
	}
	return unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
}

// Enable starts the event.
func (e *SampleEvent) Enable() error { return e.ioctl("enable", unix.PERF_EVENT_IOC_ENABLE) }

// Disable stops it.
func (e *SampleEvent) Disable() error { return e.ioctl("disable", unix.PERF_EVENT_IOC_DISABLE) }

func (e *SampleEvent) ioctl(what string, req uint) error {
	if err := unix.IoctlSetInt(e.fd, req, 0); err != nil {
		return fmt.Errorf("%s the perf event of CPU %d: %w", what, e.CPU, err)
	}
	return nil
}

// Close ends the event.
func (e *SampleEvent) Close() error { return unix.Close(e.fd) }
