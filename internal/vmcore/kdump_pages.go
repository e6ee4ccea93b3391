package vmcore

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"runtime"
	"sync"
)

// maxUnpackers bounds the goroutines that unpack at the same time.
const maxUnpackers = 8

// batch is a run of frames that the file holds, on their way to the caller.
type batch struct {
	*kdumpMemory
	out       *runs
	unpackers []unpacker

	descs  []byte  // n descriptors
	packed []byte  // the packed pages that were read, one behind the other
	place  []int   // where in packed each begins, -1 if it is unpacked already
	errs   []error // why a page has no bytes
	plain  []byte  // n pages
	shared desc    // the page that several frames share: all zeros
	common []byte  // its bytes
}

func (m *kdumpMemory) pages(page uint64, fn func(pa uint64, run []byte) error) (Tally, error) {
	n := RunSize / int(m.block)
	b := &batch{kdumpMemory: m, out: &runs{page: page, fn: fn}, descs: make([]byte, n*descSize), packed: make([]byte, RunSize),
		place: make([]int, n), errs: make([]error, n), plain: make([]byte, RunSize), common: make([]byte, m.block)}
	b.unpackers = make([]unpacker, min(runtime.GOMAXPROCS(0), maxUnpackers))
	absent, err := b.all()
	if err == nil {
		b.out.Absent += absent * (m.block / page)
	}
	return b.out.Tally, err
}

// all goes through both bitmaps. It returns how many frames of the machine the file does not hold.
func (b *batch) all() (absent uint64, err error) {
	var ram, held [leastSector / 8]byte
	var before uint64
	for first := uint64(0); first < b.frames; first += leastSector {
		if err := readBits(b.source, ram[:], b.ramMap(), first, b.frames); err != nil {
			return 0, err
		}
		if err := readBits(b.source, held[:], b.heldMap(), first, b.frames); err != nil {
			return 0, err
		}
		for i, v := range held {
			absent += uint64(bits.OnesCount8(ram[i] &^ v))
		}
		for at := 0; at < leastSector; {
			start, n := nextRun(held[:], at, len(b.place))
			if n == 0 {
				break
			}
			if err := b.do(first+uint64(start), before, n); err != nil {
				return 0, err
			}
			before += uint64(n)
			at = start + n
		}
	}
	return absent, nil
}

// nextRun finds the first bits that are set in a row, most at most, from bit at on.
func nextRun(b []byte, at, most int) (start, n int) {
	for at < len(b)*8 && b[at/8]>>(at%8)&1 == 0 {
		if at%64 == 0 && binary.LittleEndian.Uint64(b[at/8:]) == 0 {
			at += 64
			continue
		}
		at++
	}
	for start = at; n < most && at < len(b)*8 && b[at/8]>>(at%8)&1 != 0; at++ {
		n++
	}
	return start, n
}

// do hands out n frames from number first on; before is the number of the first one's descriptor.
func (b *batch) do(first, before uint64, n int) error {
	at := b.descStart() + before*descSize
	if err := b.read(b.descs[:n*descSize], at, "page descriptors"); err != nil {
		return b.oneByOne(first, before, n, err)
	}
	b.gather(at, n)
	b.unpack(n)
	size := int(b.block)
	for i := 0; i < n; {
		if err := b.errs[i]; err != nil {
			b.fail(first+uint64(i), err)
			i++
			continue
		}
		start := i
		for i < n && b.errs[i] == nil {
			i++
		}
		if err := b.out.emit((first+uint64(start))*b.block, b.plain[start*size:i*size]); err != nil {
			return err
		}
	}
	return nil
}

// oneByOne is for descriptors that cannot be read together.
func (b *batch) oneByOne(first, before uint64, n int, err error) error {
	if n == 1 || !b.holds(b.descStart()+before*descSize, descSize) {
		b.out.lose(uint64(n)*b.block, b.atAddress(first*b.block, err)) // none of them is in the file
		return nil
	}
	for i := range uint64(n) {
		if err := b.do(first+i, before+i, 1); err != nil {
			return err
		}
	}
	return nil
}

// fail counts a frame that has no bytes.
func (b *batch) fail(frame uint64, err error) {
	if errors.Is(err, ErrAbsent) {
		b.out.Absent += b.block / b.out.page
		return
	}
	if b.out.First == nil {
		err = b.atAddress(frame*b.block, err)
	}
	b.out.lose(b.block, err)
}

// check is checkDesc, and makes the text of an error only for the first one: all pages of a machine may be damaged.
func (b *batch) check(d desc, at uint64) error {
	if d.off != 0 && b.out.First != nil && !b.plausible(d) {
		return ErrDamaged
	}
	return b.checkDesc(d, at)
}

func (b *batch) desc(i int) desc { return parseDesc(b.descs[i*descSize:]) }

// gather reads the packed pages of n descriptors, the first of which lies at an offset of the file. Writers put
// pages into the file in the order of their frames, so that many can be read at once. Only the page of zeros lies before the others; it is
// unpacked at once.
func (b *batch) gather(at uint64, n int) {
	size := int(b.block)
	var from, filled int // the first page that is not read yet, and the bytes of packed that are in use
	var off, end uint64  // where in the file these pages lie
	flush := func(to int) {
		b.fetch(at, from, to, off, end, filled)
		filled += int(end - off)
		from, off, end = to, 0, 0
	}
	for i := range n {
		d, where := b.desc(i), at+uint64(i)*descSize
		b.place[i], b.errs[i] = -1, b.check(d, where)
		switch {
		case b.errs[i] != nil:
		case d == b.shared:
			copy(b.plain[i*size:], b.common)
		case d.off == end || end == 0:
			if end == 0 {
				off, end = d.off, d.off
			}
			b.place[i] = filled + int(end-off)
			end += uint64(d.size)
		case d.off < end:
			if b.errs[i] = b.unpackAt(b.plain[i*size:(i+1)*size], d, where); b.errs[i] == nil {
				b.shared = d
				copy(b.common, b.plain[i*size:])
			}
		default:
			flush(i)
			off, end = d.off, d.off+uint64(d.size)
			b.place[i] = filled
		}
	}
	flush(n)
}

// fetch reads the packed pages from number from up to to, which lie from off up to end in the file, into packed[filled:].
func (b *batch) fetch(at uint64, from, to int, off, end uint64, filled int) {
	if off == end || b.read(b.packed[filled:filled+int(end-off)], off, "packed pages") == nil {
		return
	}
	size := int(b.block)
	for i := from; i < to; i++ {
		if b.place[i] >= 0 {
			b.place[i] = -1
			b.errs[i] = b.unpackAt(b.plain[i*size:(i+1)*size], b.desc(i), at+uint64(i)*descSize)
		}
	}
}

// unpack unpacks n pages, several at the same time: each goroutine writes other pages and errors.
func (b *batch) unpack(n int) {
	var wg sync.WaitGroup
	for w := range b.unpackers {
		wg.Go(func() {
			size := int(b.block)
			for i := w; i < n; i += len(b.unpackers) {
				if b.place[i] < 0 {
					continue
				}
				d := b.desc(i)
				src := b.packed[b.place[i] : b.place[i]+int(d.size)]
				b.errs[i] = b.unpackPage(&b.unpackers[w], b.plain[i*size:(i+1)*size], src, d)
			}
		})
	}
	wg.Wait()
}
