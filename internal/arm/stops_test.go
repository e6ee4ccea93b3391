package arm

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/engine/stop"
	"stackshot/kcdata"
)

// amongStops panics on CPU 0 while a capture on CPU 1 begins, is told to end, and begins again, and
// so on.
func amongStops(t *testing.T, a *Armed) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: uint32(unsafe.Sizeof(bpf.Stop{})), MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE})
	if err != nil {
		t.Error(err)
		return
	}
	mem, err := unix.Mmap(m.FD(), 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		err = a.panic.Live.Put(uint32(0), m)
	}
	if err != nil {
		t.Error(err)
		return
	}
	word := &(*bpf.Stop)(unsafe.Pointer(&mem[0])).Word
	ready := make(chan bool)
	go func() {
		pin(t, 1)
		close(ready)
		for {
			if p := stop.PhaseOf(atomic.LoadUint64(word)); p != stop.PhaseArriving {
				atomic.StoreUint64(word, uint64(stop.PhaseArriving))
			}
		}
	}()
	<-ready
	pin(t, 0)
	sysrqC(t, nil)
}

// toldTwice: a capture was told when the panic began, and again when all was recorded.
func toldTwice(t *testing.T, s *kcdata.Snapshot) {
	if s.Panic.Live != 2 {
		t.Errorf("the panic told %d captures", s.Panic.Live)
	}
}
