package vmcore

import (
	"cmp"
	"errors"
	"slices"
)

// span is a run of physical addresses.
type span struct {
	pa, size uint64 // bytes
	off      uint64 // where it lies in the file
}

func (s span) end() uint64 { return s.pa + s.size }

// elfMemory is the memory of an ELF core.
type elfMemory struct {
	*source
	held []span // what the file holds: by ascending address, none overlaps another
	all  []span // what the machine had, likewise; off means nothing
}

// place sorts segments by address and takes each address from one of them. Two segments may have the same
// memory: /proc/vmcore has the kernel's text twice.
func (m *elfMemory) place(segments []segment) error {
	slices.SortFunc(segments, func(a, b segment) int {
		return cmp.Or(cmp.Compare(a.pa, b.pa), cmp.Compare(b.inFile, a.inFile), cmp.Compare(a.off, b.off))
	})
	var heldEnd, inFile uint64
	for _, g := range segments {
		if n := len(m.all); n > 0 && g.pa <= m.all[n-1].end() {
			m.all[n-1].size = max(m.all[n-1].size, g.pa+g.memory-m.all[n-1].pa)
		} else {
			m.all = append(m.all, span{pa: g.pa, size: g.memory})
		}
		// What comes later in this order begins later, so that only its end can be new.
		known := min(g.inFile, max(heldEnd, g.pa)-g.pa)
		s := span{pa: g.pa + known, size: g.inFile - known, off: g.off + known}
		if s.size == 0 {
			continue
		}
		m.held = append(m.held, s)
		heldEnd = s.end()
		if s.off < m.size {
			inFile += min(s.size, m.size-s.off)
		}
	}
	// Different addresses in the same bytes of the file: a pass could take for ever.
	if inFile > m.source.size {
		return m.damaged(0, "segments hold %d bytes, more than the file", inFile)
	}
	return nil
}

// find returns the span of a sorted list that has an address.
func find(list []span, pa uint64) (span, bool) {
	i, _ := slices.BinarySearchFunc(list, pa, func(s span, pa uint64) int {
		if s.end() <= pa {
			return -1
		}
		return 1
	})
	if i == len(list) || list[i].pa > pa {
		return span{}, false
	}
	return list[i], true
}

func (m *elfMemory) readPhys(p []byte, pa uint64) error {
	for len(p) > 0 {
		s, ok := find(m.held, pa)
		if !ok {
			if _, ok = find(m.all, pa); ok {
				return m.atAddress(pa, ErrAbsent)
			}
			return m.atAddress(pa, ErrOutside)
		}
		n := min(uint64(len(p)), s.end()-pa)
		if err := m.read(p[:n], s.off+pa-s.pa, "memory"); err != nil {
			return m.atAddress(pa, err)
		}
		p, pa = p[n:], pa+n
	}
	return nil
}

func (m *elfMemory) pages(page uint64, fn func(pa uint64, run []byte) error) (Tally, error) {
	out := &runs{page: page, fn: fn}
	buf := make([]byte, RunSize)
	for _, s := range m.held {
		if err := m.span(out, s, buf); err != nil {
			return out.Tally, err
		}
	}
	out.Absent = m.touched(page) - out.Pages - out.Damaged
	return out.Tally, nil
}

// span hands out the pages of one span: the whole ones, and the last one if other spans have the rest of it.
func (m *elfMemory) span(out *runs, s span, buf []byte) error {
	first, last := (s.pa+out.page-1)/out.page*out.page, s.end()/out.page*out.page
	if first < last {
		if err := m.whole(out, span{pa: first, size: last - first, off: s.off + first - s.pa}, buf); err != nil {
			return err
		}
	}
	if s.end() == last || last < s.pa {
		return nil
	}
	switch err := m.readPhys(buf[:out.page], last); {
	case err == nil:
		return out.emit(last, buf[:out.page])
	case errors.Is(err, ErrDamaged):
		out.lose(out.page, err)
	}
	return nil // a page of which only a part is there counts as absent
}

// whole hands out a span of whole pages.
func (m *elfMemory) whole(out *runs, s span, buf []byte) error {
	inFile := s.size
	if !m.holds(s.off, s.size) {
		inFile = (max(s.off, m.size) - s.off) / out.page * out.page
	}
	for done := uint64(0); done < inFile; {
		n := min(inFile-done, uint64(len(buf)))
		if err := m.run(out, s.pa+done, s.off+done, buf[:n]); err != nil {
			return err
		}
		done += n
	}
	if inFile < s.size {
		out.lose(s.size-inFile, m.atAddress(s.pa+inFile, m.read(buf[:out.page], s.off+inFile, "memory")))
	}
	return nil
}

// run hands out pages that lie in the file. If they cannot be read together, each is tried alone.
func (m *elfMemory) run(out *runs, pa, off uint64, b []byte) error {
	err := m.read(b, off, "memory")
	if err == nil {
		return out.emit(pa, b)
	}
	if uint64(len(b)) == out.page {
		out.lose(out.page, m.atAddress(pa, err))
		return nil
	}
	for i := uint64(0); i < uint64(len(b)); i += out.page {
		if err := m.run(out, pa+i, off+i, b[i:i+out.page]); err != nil {
			return err
		}
	}
	return nil
}

// touched is how many pages the machine had, those included of which it had a part.
func (m *elfMemory) touched(page uint64) (n uint64) {
	var next uint64 // number of the first page that is not counted yet
	for _, s := range m.all {
		first, last := max(s.pa/page, next), (s.end()-1)/page
		if first <= last {
			n, next = n+last-first+1, last+1
		}
	}
	return n
}
