package procfs

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

// A CPU that runs us, and so has its tick or comes from idle, shows it.
func TestActivityMoves(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	before, err := FS{}.Activity()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	after, err := FS{}.Activity()
	if err != nil {
		t.Fatal(err)
	}
	for cpu := range before {
		if set.IsSet(cpu) && before[cpu] == after[cpu] {
			t.Errorf("CPU %d: %+v, and the same 100 ms later", cpu, before[cpu])
		}
		if after[cpu].Interrupts < before[cpu].Interrupts {
			t.Errorf("CPU %d: %d interrupts, then %d", cpu, before[cpu].Interrupts, after[cpu].Interrupts)
		}
	}
	if len(before) < set.Count() {
		t.Errorf("%d CPUs, this process may use %d", len(before), set.Count())
	}
}
