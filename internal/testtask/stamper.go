//go:build linux && (amd64 || arm64)

package testtask

import (
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Gap is a time, CLOCK_MONOTONIC ns, in which a stamper did not run: Start
// is its last stamp before, End its first after.
type Gap struct{ Start, End int64 }

// shortestGap is what a stamper writes down. Between two stamps that are no gap
// lies less.
const shortestGap = 2 * time.Microsecond

const ringGaps = 1<<15 - 8 // with its head, a ring is whole pages of any size

// A stampRing is shared by the test process and one stamper. Plain words: see
// slot.
type stampRing struct {
	until uint64 // written by the test process: when to fall asleep again
	pad0  [7]uint64
	last  uint64 // written by the stamper, as all that follows: the latest stamp
	gaps  uint64 // how many so far
	pad1  [6]uint64
	ring  [ringGaps]Gap
}

const ringSize = int(unsafe.Sizeof(stampRing{}))

// Stampers is one process per CPU, pinned there, of SCHED_OTHER and in user
// mode, that asks CLOCK_MONOTONIC as fast as it can and writes down where it
// was kept from it. It has the CPU before other ordinary tasks: nice -20, in a
// session of its own because CONFIG_SCHED_AUTOGROUP shares the CPU out by
// session first. So it sleeps but for the times it is asked for.
type Stampers struct {
	*Fixture
	mem   []byte
	rings map[int]*stampRing // by CPU
}

// stamperLife is when a stamper ends that nobody has ended.
const stamperLife = 2 * time.Minute

// Stamp starts a stamper on each of these CPUs. They end with the test.
func Stamp(tb testing.TB, cpus ...int) *Stampers {
	tb.Helper()
	fd, err := unix.MemfdCreate("testtask-stamps", unix.MFD_CLOEXEC)
	if err != nil {
		tb.Fatalf("testtask: memfd_create: %v", err)
	}
	file := os.NewFile(uintptr(fd), "testtask-stamps")
	defer file.Close()
	if err := file.Truncate(int64(ringSize * len(cpus))); err != nil {
		tb.Fatalf("testtask: stamps of %d CPUs: %v", len(cpus), err)
	}
	mem, err := unix.Mmap(fd, 0, ringSize*len(cpus), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		tb.Fatalf("testtask: map stamps: %v", err)
	}
	tb.Cleanup(func() { unix.Munmap(mem) })
	s := &Stampers{mem: mem, rings: map[int]*stampRing{}}
	var kinds []Kind
	for i, cpu := range cpus {
		s.rings[cpu] = (*stampRing)(unsafe.Pointer(&mem[i*ringSize]))
		kinds = append(kinds, Kind{Name: stamper.Name, N: i, CPU: cpu, Life: stamperLife,
			File: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)})
	}
	s.Fixture = Start(tb, kinds...)
	tb.Cleanup(s.end)
	for i := range s.Children {
		// Refused where there are no such groups, and not needed there.
		os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", s.Children[i].Pid), []byte("-20"), 0)
	}
	return s
}

// end is before the fixture's own, which looks for its process group only.
func (s *Stampers) end() {
	for i := range s.Children {
		s.complain(&s.Children[i], s.End(&s.Children[i]))
	}
}

// On is the stamper of a CPU.
func (s *Stampers) On(cpu int) *Child {
	for i := range s.Children {
		if s.Children[i].Kind.CPU == cpu {
			return &s.Children[i]
		}
	}
	return nil
}

// Last is the latest stamp of a CPU.
func (s *Stampers) Last(cpu int) int64 { return int64(atomic.LoadUint64(&s.rings[cpu].last)) }

// Run has all stamp for the next d. They begin within a millisecond, and the
// caller is better asleep by then. It may be called from any goroutine.
func (s *Stampers) Run(d time.Duration) {
	until := uint64(nanotime() + int64(d))
	for _, r := range s.rings {
		atomic.StoreUint64(&r.until, until)
	}
}

// Gaps are those of a CPU that overlap [from, to], oldest first, sleep among
// them; one that is not over has no End. False: some may be missing, because the ring has come
// round since.
func (s *Stampers) Gaps(cpu int, from, to int64) ([]Gap, bool) {
	r := s.rings[cpu]
	last := s.Last(cpu)
	n := atomic.LoadUint64(&r.gaps)
	first := n - min(n, ringGaps-1) // the stamper may be at work on the one after the last
	copied := make([]Gap, 0, n-first)
	for i := first; i < n; i++ {
		copied = append(copied, r.ring[i%ringGaps])
	}
	now := atomic.LoadUint64(&r.gaps)
	lost := now + 1 - min(now+1, ringGaps) // those before it may have been written over
	copied = copied[min(max(lost, first)-first, n-first):]
	whole := lost == 0
	var out []Gap
	for _, g := range copied {
		whole = whole || g.End < from
		if g.End > from && g.Start < to {
			out = append(out, g)
		}
	}
	if last < to && (len(out) == 0 || out[len(out)-1].End < to) {
		out = append(out, Gap{last, math.MaxInt64})
	}
	return out, whole
}

// stampSteps are a stamper's: its ring is part of a file of the test process.
func (s *stage) stampSteps() ([]step, error) {
	f, err := os.OpenFile(s.kind.File, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("stamps: %w", err)
	}
	defer f.Close()
	mem, err := unix.Mmap(int(f.Fd()), int64(s.kind.N*ringSize), ringSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map stamps: %w", err)
	}
	set := new(unix.CPUSet)
	set.Set(s.kind.CPU)
	return []step{
		{nr: unix.SYS_SETSID, must: true},
		{nr: unix.SYS_SCHED_SETAFFINITY, arg: args{0, unix.SizeofPtr * uintptr(len(set)), addr(&set[0])}, must: true},
		{nr: unix.SYS_SETPRIORITY, arg: args{unix.PRIO_PROCESS, 0, ^uintptr(19)}, must: true},
		{nr: opStamp, arg: args{uintptr(s.kind.Life)}, ring: (*stampRing)(unsafe.Pointer(&mem[0]))},
	}, nil
}

// nanotime is CLOCK_MONOTONIC through the vDSO. It needs nothing of the runtime
// but this thread's own stacks, which a fork keeps.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

// run ends with the test process too: the signal that ends other actors goes to
// their process group.
//
//go:nosplit
//go:norace
func (r *stampRing) run(life int64) {
	pause := unix.Timespec{Nsec: 500_000}
	parent, _, _ := syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
	now := nanotime()
	last, end := now, now+life
	for now < end {
		if now-last >= int64(shortestGap) {
			r.ring[r.gaps%ringGaps] = Gap{last, now}
			r.gaps++
		}
		r.last = uint64(now)
		last = now
		if uint64(now) >= r.until {
			if was, _, _ := syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); was != parent {
				return
			}
			syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
		}
		now = nanotime()
	}
}
