package trapmemory

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/panicregion"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// A part whose first thread is gone, or to which the pause did not come, takes others with it, which may live: they are
// left out, and said to be; the task's other threads are in the file. With the whole task gone nobody
// misses anything.
func TestInvariant5PartWithoutItsFirstThread(t *testing.T) {
	const opens, whole, gone, cut, full = bpf.PartOpened, bpf.PartWhole, bpf.PartVanished, bpf.PartCut, bpf.PartNoRoom
	for _, c := range []struct {
		what   string
		states []uint32
		flags  []uint32
		want   []uint32 // reasons of the parts that are not in the file
		errno  unix.Errno
	}{
		{"the second of three", []uint32{whole, gone, whole}, []uint32{opens, 0, bpf.PartClosed}, []uint32{kcdata.LeftOutError}, unix.ESRCH},
		{"the last two", []uint32{whole, gone, gone}, []uint32{opens, 0, 0}, []uint32{kcdata.LeftOutError, kcdata.LeftOutError}, unix.ESRCH},
		{"the whole task", []uint32{gone, gone}, []uint32{0, 0}, []uint32{kcdata.LeftOutVanished, kcdata.LeftOutVanished}, 0},
		{"the first alone", []uint32{gone, whole}, []uint32{0, 0}, []uint32{kcdata.LeftOutVanished, kcdata.LeftOutVanished}, 0},
		{"the pause ended in the second", []uint32{whole, cut, cut}, []uint32{opens, 0, 0}, []uint32{kcdata.LeftOutMaxPause, kcdata.LeftOutMaxPause}, 0},
		{"the pause ended in the first", []uint32{cut, whole}, []uint32{opens, bpf.PartClosed}, []uint32{kcdata.LeftOutMaxPause, kcdata.LeftOutMaxPause}, 0},
		{"no room for the last", []uint32{whole, full}, []uint32{opens, 0}, []uint32{kcdata.LeftOutNoSpace}, unix.ENOSPC},
	} {
		m := &Memory{}
		for n, state := range c.states {
			m.Parts = append(m.Parts, bpf.TrapPart{Worker: 1, State: state, Flags: c.flags[n]})
			m.Items = append(m.Items, workqueue.Item{Index: 7, Tgid: 4711, Count: 64})
		}
		m.Fill = func(*bpf.TrapPart, *capture.Part) (uint64, error) { return 0, nil }
		var raw capture.Raw
		m.Into(&raw, nil)
		got := raw.Failed
		if len(got) != len(c.want) {
			t.Fatalf("%s: %+v", c.what, got)
		}
		for i, g := range got {
			if g.Reason != c.want[i] || g.Errno != c.errno || g.Item.Count != 64 {
				t.Errorf("%s: %+v, want reason %d, errno %v", c.what, g, c.want[i], c.errno)
			}
		}
	}
}

// The idle threads' container needs no flags: record_idles opens and closes it.
func TestIdleTaskIsKept(t *testing.T) {
	for _, c := range []struct {
		panicked bool
		part     bpf.TrapPart
		pieces   int // 0: it is left out
	}{
		{false, bpf.TrapPart{Worker: 1, State: bpf.PartWhole, Threads: 2}, 1},
		{true, bpf.TrapPart{Worker: 1, State: bpf.PartWhole, Threads: 2}, 1},
		{false, bpf.TrapPart{Worker: 1, State: bpf.PartCut, Threads: 1}, 0},
		{true, bpf.TrapPart{Worker: 1, State: bpf.PartCut, Threads: 1}, 2}, // and the end of the container
		{true, bpf.TrapPart{Worker: 1, State: bpf.PartCut}, 0},
	} {
		m := &Memory{Panicked: c.panicked, Items: []workqueue.Item{{Count: 2}}, Parts: []bpf.TrapPart{c.part}}
		m.Fill = func(_ *bpf.TrapPart, to *capture.Part) (uint64, error) { to.Pieces = [][]byte{nil}; return 0, nil }
		var raw capture.Raw
		m.Into(&raw, nil)
		whole := c.part.State == bpf.PartWhole
		if len(raw.Recorded) != min(c.pieces, 1) || c.pieces > 0 && len(raw.Recorded[0].Pieces) != c.pieces || (len(raw.Failed) == 0) != whole {
			t.Errorf("%+v: recorded %+v, failed %+v", c, raw.Recorded, raw.Failed)
		}
	}
}

// Of a task that a panic cut, the threads before the cut are kept, and the others named.
func TestPanicKeepsWhatIsRecorded(t *testing.T) {
	const opens, whole, cut, taken = bpf.PartOpened, bpf.PartWhole, bpf.PartCut, bpf.PartTaken
	part := func(state, threads, flags uint32) bpf.TrapPart {
		return bpf.TrapPart{Worker: 1, State: state, Threads: threads, Flags: flags}
	}
	for _, c := range []struct {
		what         string
		parts        []bpf.TrapPart
		kept, missed uint32 // threads
		reason       uint32
	}{
		{"cut in the first", []bpf.TrapPart{part(cut, 10, opens), {}}, 10, 118, kcdata.LeftOutPanic},
		{"cut before a thread", []bpf.TrapPart{part(cut, 0, opens), part(whole, 64, bpf.PartClosed)}, 0, 128, kcdata.LeftOutPanic},
		{"cut in the second", []bpf.TrapPart{part(whole, 64, opens), part(cut, 3, 0)}, 67, 61, kcdata.LeftOutPanic},
		{"who panicked had the second", []bpf.TrapPart{part(whole, 64, opens), part(taken, 0, 0)}, 64, 64, kcdata.LeftOutPanic},
		{"who panicked had the first", []bpf.TrapPart{part(taken, 0, 0), part(whole, 64, bpf.PartClosed)}, 0, 128, kcdata.LeftOutPanic},
		{"no room for the second", []bpf.TrapPart{part(whole, 64, opens), part(bpf.PartNoRoom, 5, 0)}, 64, 64, kcdata.LeftOutNoSpace},
	} {
		m := &Memory{Panicked: true, Parts: c.parts, Fill: func(*bpf.TrapPart, *capture.Part) (uint64, error) { return 0, nil }}
		for range c.parts {
			m.Items = append(m.Items, workqueue.Item{Index: 7, Tgid: 4711, Count: 64})
		}
		var raw capture.Raw
		m.Into(&raw, nil)
		kept, missed := uint32(0), uint32(0)
		for _, r := range raw.Recorded {
			kept += r.Threads
		}
		for _, f := range raw.Failed {
			if missed += f.Item.Count; f.Reason != c.reason {
				t.Errorf("%s: %+v", c.what, f)
			}
		}
		if kept != c.kept || missed != c.missed {
			t.Errorf("%s: %d threads kept, %d missed, want %d, %d", c.what, kept, missed, c.kept, c.missed)
		}
	}
}

// A dump has the programs' structures as they are. Whoever changes one of these sizes raises
// panicregion.Version.
func TestLayoutOfVersion(t *testing.T) {
	got := [...]uintptr{panicregion.Version, unsafe.Sizeof(bpf.Stop{}), unsafe.Sizeof(bpf.TrapWorker{}), unsafe.Sizeof(bpf.Slot{}), unsafe.Sizeof(bpf.TrapPart{}), unsafe.Sizeof(bpf.TrapPiece{})}
	if want := [...]uintptr{1, 512, 416, 128, 64, 16}; got != want {
		t.Errorf("version and sizes %v, want %v", got, want)
	}
}
