package bpftest

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// SpinMode is how a CPU spins in the kernel. The value is the program's name.
type SpinMode string

// The first two spin in a system call of a thread of this process, the third wherever
// the CPU is when its clock's interrupt comes, idle or not.
const (
	SpinPreemptOff SpinMode = "spin_preemptoff" // 6.10 and newer
	SpinIRQOff     SpinMode = "spin_irqoff"     // 6.14 and newer
	SpinInterrupt  SpinMode = "spin_interrupt"  // interrupts off; 6.4 and newer
)

// A Spinner lets CPUs spin in the kernel, each for a stated time. No module is needed.
// It is for one goroutine.
//
// Load it, and all else that the test needs, before the first CPU spins: what waits for
// every CPU (unmapping memory, loading and attaching programs) waits for the spin's end.
type Spinner struct {
	coll   *ebpf.Collection
	mode   SpinMode
	events []int
	ran    chan error // one for each thread that spun
	ways   int
}

// NewSpinner loads the program; the error says what the kernel lacks.
func NewSpinner(mode SpinMode) (*Spinner, error) {
	spec, err := LoadSpin()
	if err != nil {
		return nil, err
	}
	for name := range spec.Programs {
		if name != string(mode) {
			delete(spec.Programs, name)
		}
	}
	s := &Spinner{mode: mode, ran: make(chan error)}
	s.coll, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogDisabled: true}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mode, err)
	}
	return s, nil
}

// Spin lets CPUs spin for d and returns when all of them do. The caller must run on
// another. They spin once for each call.
func (s *Spinner) Spin(d time.Duration, cpus ...int) error {
	for _, cpu := range cpus {
		err := s.coll.Maps["spins"].Put(uint32(cpu), SpinSpin{Ns: uint64(d)})
		if err == nil && s.mode == SpinInterrupt {
			err = s.interrupt(cpu)
		}
		if err != nil {
			return fmt.Errorf("%s on CPU %d: %w", s.mode, cpu, err)
		}
	}
	if s.mode != SpinInterrupt {
		for _, cpu := range cpus {
			s.ways++
			go func() { s.ran <- s.call(cpu) }()
		}
	}
	for _, cpu := range cpus {
		if _, err := s.await(cpu, func(p SpinSpin) bool { return p.Began != 0 }); err != nil {
			return err
		}
	}
	return nil
}

// interruptEvery is how often the clock interrupts: the CPU spins at its first.
const interruptEvery = time.Millisecond

func (s *Spinner) interrupt(cpu int) error {
	fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Sample: uint64(interruptEvery),
		Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Bits: unix.PerfBitDisabled,
	}, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	s.events = append(s.events, fd)
	return errors.Join(unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, s.coll.Programs[string(s.mode)].FD()),
		unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0))
}

// call spins this thread, which ends with its goroutine.
func (s *Spinner) call(cpu int) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	code, err := s.coll.Programs[string(s.mode)].Run(&ebpf.RunOptions{})
	if err == nil && code != 0 {
		err = fmt.Errorf("%s on CPU %d: nothing to do", s.mode, cpu)
	}
	return err
}

// spinPatience is how long a CPU may take to begin, or to end what should be over.
const spinPatience = 20 * time.Second

func (s *Spinner) await(cpu int, ok func(SpinSpin) bool) (p SpinSpin, err error) {
	for limit := time.Now().Add(spinPatience); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		if err = s.coll.Maps["spins"].Lookup(uint32(cpu), &p); err != nil || ok(p) {
			return p, err
		}
	}
	return p, fmt.Errorf("%s on CPU %d: %+v after %v", s.mode, cpu, p, spinPatience)
}

// Spun waits until a CPU has spun and gives from when to when, ns of CLOCK_MONOTONIC.
func (s *Spinner) Spun(cpu int) (began, ended uint64, err error) {
	p, err := s.await(cpu, func(p SpinSpin) bool { return p.Ended != 0 })
	return p.Began, p.Ended, err
}

// Close waits for threads that spin and frees everything.
func (s *Spinner) Close() error {
	var err error
	for range s.ways {
		err = errors.Join(err, <-s.ran)
	}
	for _, fd := range s.events {
		err = errors.Join(err, unix.Close(fd))
	}
	s.coll.Close()
	return err
}
