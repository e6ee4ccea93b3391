package trapmemory

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/engine/stop"
	"stackshot/internal/panicregion"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// ErrNotLive says that no capture held the machine: the head was left in memory by a process
// that has ended, or the capture was between two stops.
var ErrNotLive = errors.New("no capture was under way in this memory")

// most bounds what is read of each section but that of the records, bytes: a million items, two million pieces.
const most = 32 << 20

// maxItems bounds the items of which a capture is made, as it does the tasks of a panic's records.
const maxItems = 1 << 17

// Live makes a capture of what was recorded when the kernel panicked. s is the region's head,
// and r gives its bytes. The records stay there: the parts have spans of r. What is not in it is in Failed; the warning kernel_panicked says so. The caller
// adds At, Wants, and what the engine knew of waits and files. Errors: ErrNotLive;
// panicregion.ErrDamaged.
func Live(s *panicregion.Static, r io.ReaderAt) (*capture.Raw, error) {
	stops, err := read[bpf.Stop](s, r, panicregion.SectionStop, 1)
	if err != nil {
		return nil, err
	}
	w := &stops[0]
	workers, err := read[bpf.TrapWorker](s, r, panicregion.SectionWorkers, -1)
	if err != nil {
		return nil, err
	}
	phase := stop.PhaseOf(w.Word)
	if !under(phase) || w.Want == 0 || w.Want > uint64(len(workers)) || stop.ArrivedOf(w.Word) > w.Want {
		return nil, fmt.Errorf("%w: phase %d, %d of %d CPUs arrived", ErrNotLive, phase, stop.ArrivedOf(w.Word), w.Want)
	}
	slots, err := read[bpf.Slot](s, r, panicregion.SectionSlots, -1)
	if err != nil {
		return nil, err
	}
	m, err := readMemory(s, r, w.Pieces)
	if err != nil {
		return nil, err
	}
	c := &capture.Raw{Engine: capture.Trap, SeenTasks: int(w.SeenTasks), SeenThreads: int(w.SeenThreads), WholeCensus: w.CensusWhole != 0, RanShort: w.Word&stop.BitNoSpace != 0}
	describe(c, workers, slots)
	if c.Capture.StopNs == 0 {
		return nil, fmt.Errorf("%w: no CPU was held yet", ErrNotLive)
	}
	region, _ := s.Section(panicregion.SectionRegion)
	c.Capture.Tries, c.Capture.BufferSize, c.Capture.CensusNs = 1, region.Len, census(workers)
	m.Into(c, func(_ *bpf.TrapPart, bytes uint64) { c.Capture.BufferUsed += bytes })
	if m.over > 0 {
		c.Warn("region_damaged", fmt.Sprintf("%d items of this capture's queue are not looked at, since at most %d are: their tasks are left out", m.over, maxItems))
	}
	c.Warn("kernel_panicked", fmt.Sprintf("the kernel panicked while this capture held the machine (%v): of %d tasks seen %d are recorded, wholly or in part",
		phase, c.SeenTasks, len(c.RecordedTasks())))
	return c, nil
}

// under reports whether a stop of this phase is under way, or was when the kernel panicked.
func under(p stop.Phase) bool {
	switch p {
	case stop.PhaseArriving, stop.PhaseCommitted, stop.PhaseDrained, stop.PhasePanicked:
		return true
	}
	return false
}

// read gives the first n structures of a section (-1: all that fit), in this machine's byte order.
func read[T any](s *panicregion.Static, r io.ReaderAt, kind uint32, n int) ([]T, error) {
	x, ok := s.Section(kind)
	size := uint64(unsafe.Sizeof(*new(T)))
	fit := x.Len / size
	if n < 0 {
		n = int(min(fit, most))
	}
	if !ok || fit == 0 || uint64(n) > fit || uint64(n)*size > most {
		return nil, fmt.Errorf("%w: section %d of %d bytes, for %d structures of %d bytes", panicregion.ErrDamaged, kind, x.Len, n, size)
	}
	if n == 0 {
		return nil, nil
	}
	out := make([]T, n)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), n*int(size))
	if _, err := r.ReadAt(b, int64(x.Off)); err != nil {
		return nil, fmt.Errorf("section %d: %w", kind, err)
	}
	return out, nil
}

// readMemory reads queue, parts and pieces. used is how many pieces the programs took.
func readMemory(s *panicregion.Static, r io.ReaderAt, used uint32) (*Memory, error) {
	queue, err := read[uint64](s, r, panicregion.SectionQueue, -1) // words: the queue is aligned
	if err != nil {
		return nil, err
	}
	m := &Memory{Panicked: true}
	if m.Items, err = workqueue.Items(unsafe.Slice((*byte)(unsafe.Pointer(&queue[0])), 8*len(queue))); err != nil {
		return nil, fmt.Errorf("%w: %w", panicregion.ErrDamaged, err)
	}
	if n := len(m.Items); n > maxItems {
		m.Items, m.over = m.Items[:maxItems], n-maxItems
	}
	if len(m.Items) == 0 {
		return m, nil
	}
	if m.Parts, err = read[bpf.TrapPart](s, r, panicregion.SectionParts, len(m.Items)); err != nil {
		return nil, err
	}
	x, _ := s.Section(panicregion.SectionPieces)
	n := min(uint64(used), x.Len/uint64(unsafe.Sizeof(bpf.TrapPiece{}))) // the count goes on where there is no room
	pieces, err := read[bpf.TrapPiece](s, r, panicregion.SectionPieces, int(n))
	if err != nil {
		return nil, err
	}
	region, _ := s.Section(panicregion.SectionRegion)
	m.Fill = fill(pieces, region, len(m.Items))
	return m, nil
}

// fill gives the places of an item's pieces. Each piece belongs to one item and has bytes, so links that form a
// cycle, or lead to pieces of others, end in an error soon.
func fill(pieces []bpf.TrapPiece, region panicregion.Section, items int) func(*bpf.TrapPart, *capture.Part) (uint64, error) {
	for i := range pieces {
		if pieces[i].Len == 0 {
			pieces[i].More = 0
		}
	}
	room, links := region.Len, items+len(pieces) // what is left
	return func(p *bpf.TrapPart, to *capture.Part) (bytes uint64, err error) {
		first := *p
		if first.Len == 0 {
			first.More = 0
		}
		for off, end := range bpf.Chain(&first, pieces, region.Len) {
			if links--; links < 0 || end-off > room {
				links = 0
				return 0, fmt.Errorf("%w: more records than room for them, or more pieces than there are", panicregion.ErrDamaged)
			}
			room -= end - off
			to.Spans, bytes = append(to.Spans, capture.Span{Off: region.Off + off, Len: end - off}), bytes+end-off
		}
		return bytes, nil
	}
}

// describe adds one record for each CPU that was to be stopped, and the times of the stop.
func describe(c *capture.Raw, workers []bpf.TrapWorker, slots []bpf.Slot) {
	level := uint32(bpf.PreemptionOff | bpf.InterruptsOff)
	first, last, window := uint64(0), uint64(0), uint64(0)
	for cpu, w := range workers {
		if w.Tid == 0 {
			continue
		}
		r := kcdata.LinuxCPU{CPU: uint32(cpu), Kind: w.Kind, Cluster: w.Cluster, Flags: kcdata.CPUMissed}
		if w.In != 0 {
			level &= w.Level
			window = max(window, w.Held)
			r.Flags = kcdata.CPUStopped
			r.ArriveNs, r.ReleaseNs = w.Arrived, w.Left
			if first == 0 || w.Arrived < first {
				first = w.Arrived
			}
			last = max(last, w.Left, w.Held)
			if w.Works != 0 {
				r.Flags |= kcdata.CPUWorked
			}
			if w.Main != 0 {
				r.Flags |= kcdata.CPUMain
			}
		}
		if cpu < len(slots) {
			ran(&r, &slots[cpu])
		}
		c.CPUs = append(c.CPUs, r)
	}
	c.Capture.StopNs, c.Capture.StoppedNs = first, last-first
	if window != 0 && last > window {
		c.Capture.WindowNs = last - window
	}
	c.Isolation = isolation(level)
}

// ran says what the CPU ran when the stop took it.
func ran(r *kcdata.LinuxCPU, s *bpf.Slot) {
	r.NrRunning = s.NrRunning
	if s.NrRunning > 0 {
		r.NrRunning-- // our worker
	}
	if s.RanKnown == 0 {
		return
	}
	r.Flags |= kcdata.CPURanKnown
	r.RanTid, r.RanTgid, r.RqClock, r.RqClockAt = s.RanTid, s.RanTgid, s.RqClock, s.StopNs
	if s.RanTid == 0 {
		r.Flags |= kcdata.CPUIdle
	}
}

func isolation(level uint32) string {
	switch {
	case level&bpf.InterruptsOff != 0:
		return capture.IRQOff
	case level&bpf.PreemptionOff != 0:
		return capture.PreemptOff
	}
	return capture.FIFO
}

func census(workers []bpf.TrapWorker) uint64 {
	for i := range workers {
		if workers[i].Main != 0 {
			return workers[i].CensusNs
		}
	}
	return 0
}
