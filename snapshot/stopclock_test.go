package snapshot

import (
	"encoding/binary"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"time"

	"stackshot/internal/clock"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// The clocks of a file are those of its stop, not of when it was written.
func TestClocksAreOfTheStop(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	s := session(t, Options{Engine: EnginePull})
	before := clock.Now()
	_, snap, plain := captureWhole(t, s, Request{})
	m, stop := snap.Machine, snap.Capture.StopNs
	if m.MonotonicNs != stop || stop < before.Monotonic {
		t.Errorf("monotonic %d, the stop was at %d", m.MonotonicNs, stop)
	}
	const slack = uint64(2 * time.Millisecond) // the clocks are read one after the other, and a host may stop us in between
	for _, c := range []struct {
		name      string
		got, then uint64
	}{{"boottime", m.BoottimeNs, before.Boottime}, {"realtime", m.RealtimeNs, before.Realtime}} {
		if want := c.then + stop - before.Monotonic; c.got+slack < want || c.got > want+slack {
			t.Errorf("%s %d, want %d at the stop", c.name, c.got, want)
		}
	}
	for it := range items(t, plain) {
		switch {
		case it.Type == kcdata.TypeMachAbsoluteTime && binary.LittleEndian.Uint64(it.Data) != stop:
			t.Errorf("MACH_ABSOLUTE_TIME % x, the stop was at %d", it.Data, stop)
		case it.Type == kcdata.TypeUsecsSinceEpoch && binary.LittleEndian.Uint64(it.Data) != m.RealtimeNs/1000:
			t.Errorf("USECS_SINCE_EPOCH % x, realtime %d", it.Data, m.RealtimeNs)
		}
	}
}

// The CPU that asked is not the main one, where --cpus or a cluster's kind gives
// another the lead; and the memory of no further use stands under Apple's name.
func TestCallingCPUAndOverheadByName(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	requireTwoCPUs(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pinHere(t, 0)
	for _, engine := range []string{EngineTrap, EnginePull, EngineProcfs} {
		s := session(t, Options{Engine: engine, CPUs: "1"})
		_, snap, plain := captureWhole(t, s, Request{})
		want := "1 0"
		if engine == EngineProcfs {
			want = "-1 0"
		}
		if l := snap.Latency; fmt.Sprint(l.MainCPU, l.CallingCPU) != want {
			t.Errorf("%s: main and calling CPU %d, %d, want %s", engine, l.MainCPU, l.CallingCPU, want)
		}
		var overhead any
		for it := range items(t, plain) {
			if name, v, ok := it.Desc(); ok && name == "stackshot_buf_overhead" {
				overhead = v
			}
		}
		if overhead != snap.Capture.Overhead {
			t.Errorf("%s: stackshot_buf_overhead %v, the capture says %d", engine, overhead, snap.Capture.Overhead)
		}
	}
}

// items gives the items of a file, to its end.
func items(t *testing.T, plain []byte) iter.Seq[kcdata.Item] {
	t.Helper()
	r, err := kcdata.NewReader(plain)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(kcdata.Item) bool) {
		for it, err := range r.Items() {
			if err != nil {
				t.Fatal(err)
			}
			if !yield(it) {
				return
			}
		}
	}
}
