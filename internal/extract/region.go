package extract

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"stackshot/internal/panicregion"
	"stackshot/internal/vmcore"
)

// Memory is a dump, as package vmcore reads it.
type Memory interface {
	// ReadPhys fills p with the memory from physical address pa on. Errors: vmcore.ErrAbsent, ErrOutside, ErrDamaged.
	ReadPhys(p []byte, pa uint64) error
	// Pages hands out all pages that the dump has, ascending, in runs.
	Pages(fn func(pa uint64, run []byte) error) (vmcore.Tally, error)
	// Info is what the kernel's vmcoreinfo says, by name.
	Info() map[string]string
}

const pageSize = panicregion.PageSize

// Region is one region of a dump.
type Region struct {
	Phys   uint64              // of its head; 0: it is not out of a dump
	Static *panicregion.Static // nil: no copy of the head is whole
	Walk   *panicregion.Walk   // nil: of a live capture, or not readable
	Err    error               // why nothing can be made of it; nil: something can
	Flaws  []string            // what is wrong with it otherwise

	mem   Memory
	runs  []panicregion.Run
	first []uint64 // for each run the page of the region with which it begins
	image []byte   // all of it, if it is not out of a dump
	lost  pageSet  // pages that could not be read
	gone  pageSet  // pages that the dump leaves out, and that were read as zeros
}

// FromMemory is the region of which image is a copy: all bytes that are needed, at their places.
// Its list is not looked at.
func FromMemory(image []byte) *Region {
	r := &Region{image: image}
	if len(image) < pageSize {
		r.Err = fmt.Errorf("%w: region of %d bytes", panicregion.ErrDamaged, len(image))
		return r
	}
	r.readHead(image[:pageSize])
	if r.Static != nil && r.Static.Pages*pageSize > uint64(len(image)) {
		r.Err = fmt.Errorf("%w: region of %d bytes, %d are there", panicregion.ErrDamaged, r.Static.Pages*pageSize, len(image))
	}
	return r
}

// readHead reads the first page. It sets Err if nothing can be made of the region.
func (r *Region) readHead(head []byte) {
	s, err := panicregion.ReadStatic(head)
	if err != nil {
		r.Err = err
		return
	}
	r.Static = s
	if flaw := panicregion.TornCopy(head); flaw != nil {
		r.Flaws = append(r.Flaws, flaw.Error()+": the other copy is used")
	}
	if s.Kind != panicregion.KindPanic {
		return
	}
	w, err := panicregion.ReadWalk(head)
	r.Walk = w
	if err != nil {
		r.Flaws = append(r.Flaws, err.Error())
	}
	r.Err = r.walkErr()
}

// walkErr says why nothing was recorded, or why it cannot be found.
func (r *Region) walkErr() error {
	records, ok := r.Static.Section(panicregion.SectionRecords)
	switch {
	case !ok:
		return fmt.Errorf("%w: no room for records", panicregion.ErrDamaged)
	case r.Walk == nil:
		return fmt.Errorf("%w: no words of the walk", panicregion.ErrDamaged)
	case r.Walk.State == panicregion.StateFree:
		return errors.New("it is empty: neither a panic nor a SysRq came to it, or what came is saved")
	case r.Walk.Bytes > records.Len:
		return fmt.Errorf("%w: %d bytes of records in room for %d", panicregion.ErrDamaged, r.Walk.Bytes, records.Len)
	case r.Walk.Bytes == 0:
		return errors.New("nothing is recorded: the walk had only begun")
	}
	return nil
}

// place sets where the pages of the region lie. Frames that lie in the region twice would let a
// small dump claim endless records.
func (r *Region) place(mem Memory, runs []panicregion.Run) error {
	page := uint64(0)
	r.mem, r.runs, r.first = mem, runs, make([]uint64, len(runs))
	for i, run := range runs {
		if run.Count == 0 || run.Count > maxRegionPages || run.Phys%pageSize != 0 || run.Phys > 1<<52 {
			return fmt.Errorf("%w: frame list: run %d of %d pages at %#x", panicregion.ErrDamaged, i, run.Count, run.Phys)
		}
		r.first[i] = page
		page += run.Count
	}
	sorted := slices.SortedFunc(slices.Values(runs), func(a, b panicregion.Run) int {
		if a.Phys < b.Phys {
			return -1
		}
		return 1
	})
	for i := 1; i < len(sorted); i++ {
		if before := sorted[i-1]; before.Phys+before.Count*pageSize > sorted[i].Phys {
			return fmt.Errorf("%w: frame list: the frame at %#x is in it twice", panicregion.ErrDamaged, sorted[i].Phys)
		}
	}
	return nil
}

// maxRegionPages bounds a region: 64 GiB.
const maxRegionPages = 1 << 24

// pages is how many pages the list has.
func (r *Region) pages() uint64 {
	if len(r.runs) == 0 {
		return 0
	}
	last := len(r.runs) - 1
	return r.first[last] + r.runs[last].Count
}

// phys is where a page of the region lies.
func (r *Region) phys(page uint64) (at uint64, more uint64, ok bool) {
	i := sort.Search(len(r.first), func(i int) bool { return r.first[i] > page }) - 1
	if i < 0 || page-r.first[i] >= r.runs[i].Count {
		return 0, 0, false
	}
	in := page - r.first[i]
	return r.runs[i].Phys + in*pageSize, r.runs[i].Count - in, true
}

// ReadAt reads bytes of the region. Pages that the dump does not have are read as zeros, and noted:
// lostIn says whether such a page was one that should be there.
func (r *Region) ReadAt(p []byte, off int64) (int, error) {
	if r.image != nil {
		if off < 0 || off > int64(len(r.image)) {
			return 0, io.EOF
		}
		n := copy(p, r.image[off:])
		if n < len(p) {
			return n, io.EOF
		}
		return n, nil
	}
	for done := 0; done < len(p); {
		at := uint64(off) + uint64(done)
		phys, more, ok := r.phys(at / pageSize)
		if !ok {
			return done, fmt.Errorf("%w: page %d is not in the frame list", panicregion.ErrDamaged, at/pageSize)
		}
		in := at % pageSize
		n := min(uint64(len(p)-done), more*pageSize-in, atOnce)
		part := p[done : done+int(n)]
		if err := r.mem.ReadPhys(part, phys+in); err != nil {
			if n = min(n, pageSize-in); n < uint64(len(part)) { // page by page
				part = part[:n]
				err = r.mem.ReadPhys(part, phys+in)
			}
			if err != nil {
				clear(part)
				r.miss(at/pageSize, err)
			}
		}
		done += int(n)
	}
	return len(p), nil
}

// atOnce is the most that is read at once, bytes: what comes before a lost page is read twice.
const atOnce = 256 << 10

// miss notes a page that was not read.
func (r *Region) miss(page uint64, err error) {
	if errors.Is(err, vmcore.ErrAbsent) {
		r.gone.add(page)
		return
	}
	r.lost.add(page)
}

// lostIn reports whether a page that could not be read lies in these bytes.
func (r *Region) lostIn(off, n uint64) bool {
	return n > 0 && r.lost.meets(off/pageSize, (off+n-1)/pageSize)
}

// Description reads what describes the machine.
func (r *Region) Description() (*panicregion.Description, error) {
	s, ok := r.Static.Section(panicregion.SectionDescription)
	if !ok || s.Len > panicregion.MaxDescription {
		return nil, fmt.Errorf("%w: no description of the machine, or one of %d bytes", panicregion.ErrDamaged, s.Len)
	}
	b := make([]byte, s.Len)
	if _, err := r.ReadAt(b, int64(s.Off)); err != nil {
		return nil, err
	}
	if sum := panicregion.Sum(b); sum != s.Sum {
		return nil, fmt.Errorf("description of the machine: %w: checksum %#x, computed %#x", panicregion.ErrDamaged, s.Sum, sum)
	}
	return panicregion.Unpack(b)
}
