package trap

import (
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// A part whose first thread is gone takes others with it, which may live: they are
// left out, and said to be. With the whole task gone nobody misses anything.
func TestInvariant5PartWithoutItsFirstThread(t *testing.T) {
	const opens, whole, gone = bpf.PartOpened, bpf.PartWhole, bpf.PartVanished
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
	} {
		e := &Engine{Loaded: &bpf.Trap{Parts: make([]bpf.TrapPart, len(c.states))}}
		var items []workqueue.Item
		for n, state := range c.states {
			e.Loaded.Parts[n] = bpf.TrapPart{Worker: 1, State: state, Flags: c.flags[n]}
			items = append(items, workqueue.Item{Index: 7, Tgid: 4711, Count: 64})
		}
		f := e.fates(items)[7]
		var got []capture.Failure
		for n, it := range items {
			why := f.why
			if why == 0 {
				why = leftOut(&e.Loaded.Parts[n])
			}
			if why != 0 {
				got = append(got, f.failure(it, why))
			}
		}
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
