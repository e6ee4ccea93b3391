package extract

import (
	"testing"
	"unsafe"

	"stackshot/internal/bpf"
	"stackshot/internal/engine/stop"
	"stackshot/internal/panicregion"
	"stackshot/internal/testheap"
	"stackshot/workqueue"
)

// madeLive is the memory of a capture that held a machine of two CPUs, made by hand: an item for
// each task, with one piece or, by pieces, with others.
type madeLive struct {
	stop    bpf.Stop
	workers [2]bpf.TrapWorker
	items   int
	parts   []bpf.TrapPart
	pieces  []bpf.TrapPiece
	records []byte
	room    uint64 // bytes of the region that the head claims; 0: those of records
}

func makeLive(t testing.TB, n int) *madeLive {
	m := &madeLive{items: n}
	m.stop = bpf.Stop{Word: uint64(stop.PhasePanicked) | 2<<stop.ArrivedShift, Want: 2, SeenTasks: uint64(n), SeenThreads: uint64(n)}
	for i := range m.workers {
		m.workers[i] = bpf.TrapWorker{Tid: uint32(50 + i), In: 1, Works: 1, Arrived: 1000, Held: 1100, Left: 9000}
	}
	m.workers[0].Main = 1
	records, ends := someTasks(t, n)
	m.records = records
	from := uint64(0)
	for i, end := range ends {
		m.parts = append(m.parts, bpf.TrapPart{Worker: 1, State: bpf.PartWhole, Flags: bpf.PartOpened | bpf.PartClosed,
			Threads: uint32(1 + i%3), Off: uint32(from), Len: uint32(end - from)})
		from = end
	}
	return m
}

func bytesOf[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}

// region is the memory as extraction reads it.
func (m *madeLive) region(t testing.TB) *Region {
	t.Helper()
	queue := testheap.Mapped(t, workqueue.Size(m.items))
	q, err := workqueue.New(queue, m.items, false, func() int64 { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.items {
		if err := q.Push(workqueue.Item{Index: uint32(i), Tgid: int32(100 + 10*i), Count: uint32(1 + i%3)}); err != nil {
			t.Fatal(err)
		}
	}
	m.stop.Pieces = uint32(len(m.pieces))
	s := panicregion.Static{Kind: panicregion.KindLive, Arch: 62, Region: 88, Generation: 1, BootID: [16]byte{1, 2}, Written: 900}
	image := make([]byte, pageSize)
	for _, x := range []struct {
		kind uint32
		b    []byte
	}{
		{panicregion.SectionStop, bytesOf([]bpf.Stop{m.stop})}, {panicregion.SectionWorkers, bytesOf(m.workers[:])},
		{panicregion.SectionSlots, make([]byte, pageSize)}, {panicregion.SectionQueue, queue},
		{panicregion.SectionParts, bytesOf(m.parts)}, {panicregion.SectionPieces, append(bytesOf(m.pieces), make([]byte, 16)...)},
		{panicregion.SectionRegion, m.records},
	} {
		b := append(x.b[:len(x.b):len(x.b)], make([]byte, -len(x.b)&(pageSize-1))...)
		s.Sections = append(s.Sections, panicregion.Section{Kind: x.kind, Off: uint64(len(image)), Len: uint64(len(b))})
		image = append(image, b...)
	}
	if m.room != 0 {
		s.Sections[6].Len = m.room
	}
	s.Pages = (s.Sections[6].Off + s.Sections[6].Len) / pageSize
	if err := panicregion.PutStatic(image, &s); err != nil {
		t.Fatal(err)
	}
	r := FromMemory(image)
	if m.room != 0 { // the rest is not there
		r.Err = nil
	}
	return r
}
