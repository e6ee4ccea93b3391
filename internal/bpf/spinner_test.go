package bpf_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/testneed"
	"stackshot/snapshot"
)

// A CPU that spins in the kernel runs nothing else meanwhile: a thread that reads the
// clock there has a gap as long.
func TestSpinner(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Root(t)
	if runtime.NumCPU() < 2 {
		t.Skip("one CPU: nobody is left to look")
	}
	const cpu, length = 1, 30 * time.Millisecond
	unlock, err := snapshot.LockMachine(t.Context(), testneed.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		testneed.Lacking(t, "needs BTF: %v", err)
	}
	for mode, kfunc := range map[bpftest.SpinMode]string{
		bpftest.SpinPreemptOff: "bpf_preempt_disable", bpftest.SpinIRQOff: "bpf_local_irq_save", bpftest.SpinInterrupt: "bpf_iter_num_new",
	} {
		t.Run(string(mode), func(t *testing.T) {
			s, err := bpftest.NewSpinner(mode)
			if _, lacks := kernel.AnyTypeByName(kfunc); lacks != nil {
				if err == nil {
					t.Errorf("loaded on a kernel without %s", kfunc)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			reads, stop, gap := make(chan bool), make(chan bool), make(chan time.Duration)
			go func() { gap <- widestGap(cpu, reads, stop) }()
			<-reads
			if err := s.Spin(length, cpu); err != nil {
				t.Fatal(err)
			}
			began, ended, err := s.Spun(cpu)
			close(stop)
			got := <-gap
			if spun := time.Duration(ended - began); err != nil || spun < length || got < length {
				t.Errorf("spun %v, a gap of %v, want %v (%v)", spun, got, length, err)
			}
		})
	}
}

// widestGap reads the clock on a CPU, as fast as it can, until it is stopped. It closes
// reads when it begins.
func widestGap(cpu int, reads chan<- bool, stop <-chan bool) (widest time.Duration) {
	runtime.LockOSThread() // and ends with the goroutine
	var set unix.CPUSet
	set.Set(cpu)
	err := unix.SchedSetaffinity(0, &set)
	last := time.Now()
	close(reads)
	if err != nil {
		return 0
	}
	for {
		now := time.Now()
		widest, last = max(widest, now.Sub(last)), now
		select {
		case <-stop:
			return max(widest, time.Since(last))
		default:
		}
	}
}
