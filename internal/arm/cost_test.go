package arm

import (
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/testneed"
)

// Armed and unused, no program of ours runs, whatever the machine does, and switches and forks
// cost what they cost unarmed. The ratio is printed.
func TestArmedAndUnused(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	testneed.Root(t)
	switches, forks := testneed.Length(20_000, 1_000_000), testneed.Length(50, 10_000)
	counted, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		t.Fatal(err)
	}
	defer counted.Close()
	var times [2][]time.Duration // unarmed, armed
	for range 2 {
		times[0] = append(times[0], work(t, switches, forks))
		a := armed(t, Options{Sysrq: true, Panic: true, UserStacks: bpf.UserAuto, Wait: true})
		times[1] = append(times[1], work(t, switches, forks))
		for name, n := range ourRuns(t) {
			if n != 0 {
				t.Errorf("%s has run %d times", name, n)
			}
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d switches and %d forks: unarmed %v, armed %v; the faster of each: ratio %.3f", switches, forks, times[0], times[1],
		float64(slices.Min(times[1]))/float64(slices.Min(times[0])))
}

// ourRuns is how often each of our programs has run.
func ourRuns(t *testing.T) map[string]uint64 {
	t.Helper()
	runs := map[string]uint64{}
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue
		}
		info, err := p.Info()
		if err == nil && strings.HasPrefix(info.Name, "on_") {
			s, err := p.Stats()
			if err != nil {
				t.Fatal(err)
			}
			runs[info.Name] = s.RunCount
		}
		p.Close()
	}
	if len(runs) < 2 {
		t.Errorf("programs of ours: %v", runs)
	}
	return runs
}

// work has two threads of one CPU wake each other in turn, and starts processes.
func work(t *testing.T, switches, forks int) time.Duration {
	t.Helper()
	var there, back [2]int
	for _, p := range []*[2]int{&there, &back} {
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	done := make(chan error, 2)
	turn := func(from, to, n int, first bool) {
		runtime.LockOSThread() // and ended with the goroutine, for it is pinned
		var one unix.CPUSet
		one.Set(0)
		err := unix.SchedSetaffinity(0, &one)
		b := []byte{0}
		for range n {
			if first {
				unix.Write(to, b)
			}
			unix.Read(from, b)
			if !first {
				unix.Write(to, b)
			}
		}
		done <- err
	}
	go turn(back[0], there[1], switches/2, true)
	go turn(there[0], back[1], switches/2, false)
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for range forks {
		if err := exec.Command("true").Run(); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(began)
	for _, fd := range []int{there[0], there[1], back[0], back[1]} {
		unix.Close(fd)
	}
	return took
}
