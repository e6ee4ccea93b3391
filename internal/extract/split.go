package extract

import (
	"encoding/binary"
	"errors"
	"fmt"

	"stackshot/kcdata"
)

// span is one task in the records: its bytes, from its begin to its end.
type span struct {
	off, len uint64 // bytes of the records
	tgid     int32
	threads  uint32
	open     []uint64 // containers that have no end: the innermost last
}

// Bounds of a split.
const (
	maxTasks    = 1 << 17
	maxDepth    = 8
	maxItemSize = 1 << 24
	itemHeader  = 16
	window      = 256 << 10
)

// splitter cuts the records into tasks. It looks at headers only, one after the other.
type splitter struct {
	r        *Region
	base     uint64 // of the records, in the region
	end      uint64 // bytes of the records that are whole
	buf      []byte
	at, have uint64 // buf holds the bytes from at on
	spans    []span
	flaws    []string
	skipped  uint64 // bytes that belong to no task
	looks    uint64 // items and places that may still be looked at
}

// errTired says that damaged records were looked at often enough.
var errTired = errors.New("too much is damaged to look further")

// split gives the tasks of a region. What lies behind end is not read. Where the records are
// damaged, it goes on at the next begin of a task, and says so.
func split(r *Region, base, end uint64) *splitter {
	s := &splitter{r: r, base: base, end: end, buf: make([]byte, window)}
	// Each item is looked at once, and each place behind damage: more only if walks from several places overlap.
	s.looks = maxWalks * (end/itemHeader + 1)
	at := uint64(0)
	for at < end && len(s.spans) < maxTasks {
		one, err := s.task(at)
		if err == nil {
			s.spans = append(s.spans, one)
			at += one.len
			continue
		}
		next := end
		if !errors.Is(err, errTired) {
			next = s.resync(at + itemHeader)
		}
		s.flaws = append(s.flaws, fmt.Sprintf("records at byte %d: %v; %d bytes are left out", at, err, next-at))
		s.skipped += next - at
		at = next
	}
	if at < end {
		s.skipped += end - at
		s.flaws = append(s.flaws, fmt.Sprintf("more than %d tasks: the others are left out", maxTasks))
	}
	if len(s.flaws) > maxFlaws {
		s.flaws = append(s.flaws[:maxFlaws], fmt.Sprintf("and %d more damaged places", len(s.flaws)-maxFlaws))
	}
	return s
}

// maxWalks is how often all of the records may be looked at: damage that somebody made could
// have it done from each place of them.
const maxWalks = 8

// maxFlaws bounds the sentences about one region's records.
const maxFlaws = 16

// item is a header and the first word of the data.
type item struct {
	typ, size uint32
	flags     uint64
	first     uint32
}

// whole is how many bytes the item takes: its data padded to 16 bytes.
func (it *item) whole() uint64 { return itemHeader + (uint64(it.size)+15)&^15 }

func (s *splitter) item(at uint64) (it item, err error) {
	if s.looks == 0 {
		return it, errTired
	}
	s.looks--
	b, err := s.bytes(at, itemHeader)
	if err != nil {
		return it, err
	}
	it = item{typ: binary.LittleEndian.Uint32(b), size: binary.LittleEndian.Uint32(b[4:]), flags: binary.LittleEndian.Uint64(b[8:])}
	if it.size > maxItemSize || it.whole() > s.end-at {
		return it, fmt.Errorf("item %#x of %d bytes at byte %d is longer than what is left", it.typ, it.size, at)
	}
	if s.r.lostIn(s.base+at, it.whole()) {
		return it, fmt.Errorf("item at byte %d lies in a page that the dump has lost", at)
	}
	if it.size >= 4 {
		if b, err = s.bytes(at+itemHeader, 4); err == nil {
			it.first = binary.LittleEndian.Uint32(b)
		}
	}
	return it, err
}

// bytes gives n bytes at a place of the records.
func (s *splitter) bytes(at, n uint64) ([]byte, error) {
	if at+n > s.end {
		return nil, fmt.Errorf("the records end at byte %d, inside an item", s.end)
	}
	if at < s.at || at+n > s.at+s.have {
		s.at, s.have = at, min(window, s.end-at)
		if _, err := s.r.ReadAt(s.buf[:s.have], int64(s.base+at)); err != nil {
			s.have = 0
			return nil, err
		}
	}
	return s.buf[at-s.at:][:n], nil
}

func isTask(it *item) bool {
	return it.typ == uint32(kcdata.TypeContainerBegin) && (it.first == uint32(kcdata.TypeTask) || it.first == uint32(kcdata.TypeTransitioningTask)) && it.size >= 4 && it.size <= itemHeader
}

// task reads the headers of one task.
func (s *splitter) task(at uint64) (out span, err error) {
	it, err := s.item(at)
	if err != nil {
		return out, err
	}
	if !isTask(&it) {
		return out, fmt.Errorf("item %#x where a task begins", it.typ)
	}
	out = span{off: at, tgid: int32(it.flags)}
	open := []uint64{it.flags}
	for at += it.whole(); len(open) > 0; at += it.whole() {
		if at == s.end { // the machine died, or there was no room: what is whole counts
			out.len, out.open = at-out.off, open
			return out, nil
		}
		if it, err = s.item(at); err != nil {
			return out, fmt.Errorf("task %d: %w", out.tgid, err)
		}
		switch kcdata.Type(it.typ) {
		case kcdata.TypeContainerBegin:
			if isTask(&it) || len(open) == maxDepth {
				return out, fmt.Errorf("task %d has no end", out.tgid)
			}
			open = append(open, it.flags)
			if it.first == uint32(kcdata.TypeThread) {
				out.threads++
			}
		case kcdata.TypeContainerEnd:
			if it.flags != open[len(open)-1] {
				return out, fmt.Errorf("task %d: container %#x ends in %#x", out.tgid, it.flags, open[len(open)-1])
			}
			open = open[:len(open)-1]
		}
	}
	out.len = at - out.off
	return out, nil
}

// resync finds the next place that begins a task: a begin whose task's own record says the same
// number. s.end: there is none.
func (s *splitter) resync(at uint64) uint64 {
	for ; at+itemHeader <= s.end && s.looks > 0; at += itemHeader {
		s.looks--
		b, err := s.bytes(at, itemHeader)
		if err != nil {
			return s.end
		}
		if kcdata.Type(binary.LittleEndian.Uint32(b)) != kcdata.TypeContainerBegin {
			continue
		}
		it, err := s.item(at)
		if err != nil || !isTask(&it) {
			continue
		}
		if next, err := s.item(at + it.whole()); err == nil && kcdata.Type(next.typ) == kcdata.TypeTaskSnapshot {
			return at
		}
	}
	return s.end
}

// ends are the items that close what a task has left open.
func (o *span) ends() []byte {
	var out []byte
	for i := len(o.open) - 1; i >= 0; i-- {
		out = binary.LittleEndian.AppendUint32(out, uint32(kcdata.TypeContainerEnd))
		out = binary.LittleEndian.AppendUint32(out, 0)
		out = binary.LittleEndian.AppendUint64(out, o.open[i])
	}
	return out
}
