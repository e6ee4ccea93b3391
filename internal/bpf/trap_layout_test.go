package bpf

import (
	"testing"

	"github.com/cilium/ebpf/btf"

	"stackshot/bumpalloc"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

var trapObjects = map[string]string{
	"amd64": "trapobject_x86_bpfel.o", "arm64": "trapobject_arm64_bpfel.o",
	"amd64, tests": "bpftest/trap_x86_bpfel.o", "arm64, tests": "bpftest/trap_arm64_bpfel.o",
}

// drawn are the offsets that the doc.go of workqueue and of bumpalloc draw,
// which their own layout tests hold Go to.
var drawn = map[string]map[string]uint32{
	"queue_fixed": {"magic": 0, "version": 4, "capacity": 8, "queues": 12, "pushed": 128, "refused": 132,
		"populated": 256, "lanes": 384, "slots": 896},
	"queue_lane": {"tail": 0, "head": 128},
	"queue_slot": {"waited_ns": 0, "waits": 8, "taken": 16},
	"queue_item": {"index": 0, "tgid": 4, "first_tid": 8, "count": 12},
	"arenas":     {"magic": 0, "version": 4, "clusters": 8, "epoch": 12, "data_size": 16, "arena": 128},
	"arena": {"base": 0, "size": 4, "used": 128, "spilled": 136, "lock": 256, "head": 260, "entries": 264,
		"listed": 272, "reused": 280, "fault": 288, "allocs": 384, "frees": 392, "freed": 400, "spill": 408,
		"foreign": 416, "busy": 424, "refused": 432},
}

// The trap works on the very bytes of packages workqueue and bumpalloc.
func TestTrapSharesLayouts(t *testing.T) {
	testneed.Live(t)
	for arch, object := range trapObjects {
		types := typesOf(t, object)
		for name, want := range drawn {
			s, seen := structOf(t, types, name), 0
			for _, m := range s.Members {
				if off, ok := want[m.Name]; ok {
					seen++
					if m.Offset.Bytes() != off {
						t.Errorf("%s: %s.%s at %d, drawn at %d", arch, name, m.Name, m.Offset.Bytes(), off)
					}
				}
			}
			if seen != len(want) {
				t.Errorf("%s: struct %s has %d of %d members drawn", arch, name, seen, len(want))
			}
		}
		if got := structOf(t, types, "arenas").Size; int(got) != bumpalloc.ControlSize(bumpalloc.MaxClusters) {
			t.Errorf("%s: control words of %d bytes, in Go %d", arch, got, bumpalloc.ControlSize(bumpalloc.MaxClusters))
		}
		fixed, item := structOf(t, types, "queue_fixed").Size, structOf(t, types, "queue_item").Size
		if got := int(fixed + item + 8); got != workqueue.Size(1) {
			t.Errorf("%s: a queue of one item has %d bytes, in Go %d", arch, got, workqueue.Size(1))
		}
	}
}

// The places of the trace are numbered alike in C and in the file's format.
func TestTracePlaces(t *testing.T) {
	testneed.Live(t)
	want := map[string]uint64{
		"TRACE_TAKEN": kcdata.TraceTaken, "TRACE_ARRIVED": kcdata.TraceArrived, "TRACE_DECIDED": kcdata.TraceDecided,
		"TRACE_HELD": kcdata.TraceHeld, "TRACE_CENSUS": kcdata.TraceCensus, "TRACE_ITEM": kcdata.TraceItem,
		"TRACE_ITEM_END": kcdata.TraceItemEnd, "TRACE_CHUNK": kcdata.TraceChunk, "TRACE_NO_SPACE": kcdata.TraceNoSpace,
		"TRACE_DRAINED": kcdata.TraceDrained, "TRACE_VERIFIED": kcdata.TraceVerified, "TRACE_RELEASED": kcdata.TraceReleased,
		"TRACE_LEFT": kcdata.TraceLeft,
	}
	for arch, object := range trapObjects {
		var e *btf.Enum
		if err := typesOf(t, object).TypeByName("trace_place", &e); err != nil {
			t.Fatal(err)
		}
		for _, v := range e.Values {
			if got, ok := want[v.Name]; !ok || got != v.Value {
				t.Errorf("%s: %s is %d in C, %d in Go", arch, v.Name, v.Value, got)
			}
		}
		if len(e.Values) != len(want) {
			t.Errorf("%s: %d places in C, %d in Go", arch, len(e.Values), len(want))
		}
	}
}
