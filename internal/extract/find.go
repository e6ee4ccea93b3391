package extract

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"stackshot/internal/panicregion"
	"stackshot/internal/vmcore"
)

// Found is what a dump has.
type Found struct {
	Regions []*Region // the best first: what can be made a file of, then the newest
	Tally   vmcore.Tally
	Flaws   []string // of the search
}

// key tells regions apart.
type key struct {
	boot   [16]byte
	region uint64
}

// listAt is where a list page was found.
type listAt struct {
	index, lists uint32
	phys         uint64 // of a dump; else its place in the frames file
}

// Bounds of what a search keeps of pages that look like heads and list pages.
const (
	maxHeads = 256
	maxLists = 1 << 16
	maxRuns  = 1 << 20 // of all regions together
)

// finder is one search.
type finder struct {
	mem    Memory
	heads  []uint64
	lists  map[key][]listAt
	kept   int // list pages
	over   int // heads and list pages that were not kept
	broken int // list pages that are damaged
	runs   int // that the regions so far have
	page   []byte
}

// Find searches a dump. An error ends the search, and what was found until then comes with it.
func Find(mem Memory) (*Found, error) {
	f := &finder{mem: mem, lists: map[key][]listAt{}, page: make([]byte, pageSize)}
	tally, err := mem.Pages(func(pa uint64, run []byte) error {
		for at := 0; at+pageSize <= len(run); at += pageSize {
			f.look(pa+uint64(at), run[at:at+pageSize])
		}
		return nil
	})
	found := &Found{Tally: tally, Regions: f.regions(), Flaws: f.flaws()}
	found.judge(mem.Info())
	return found, err
}

// flaws are those of the search.
func (f *finder) flaws() (out []string) {
	if f.over > 0 {
		out = append(out, fmt.Sprintf("%d pages that look like heads and frame lists were not looked at: there are too many", f.over))
	}
	if f.broken > 0 {
		out = append(out, fmt.Sprintf("%d pages of frame lists are damaged", f.broken))
	}
	return out
}

func (f *finder) look(pa uint64, page []byte) {
	switch {
	case panicregion.IsHead(page):
		if len(f.heads) < maxHeads {
			f.heads = append(f.heads, pa)
		} else {
			f.over++
		}
	case panicregion.IsList(page):
		f.list(pa, page)
	}
}

func (f *finder) list(at uint64, page []byte) {
	l, err := panicregion.ReadList(page)
	switch {
	case err != nil:
		f.broken++
	case f.kept == maxLists:
		f.over++
	default:
		k := key{l.BootID, l.Region}
		f.lists[k] = append(f.lists[k], listAt{l.Index, l.Lists, at})
		f.kept++
	}
}

// FromFrames reads the regions of a frames file: a head and its list pages. The file says only where
// the frames are; head and all else come from the dump.
func FromFrames(mem Memory, file []byte) (*Found, error) {
	f := &finder{mem: mem, lists: map[key][]listAt{}, page: make([]byte, pageSize)}
	var heads []key
	for at := 0; at+pageSize <= len(file); at += pageSize {
		page := file[at : at+pageSize]
		if s, err := panicregion.ReadStatic(page); err == nil {
			switch k := (key{s.BootID, s.Region}); {
			case slices.Contains(heads, k):
			case len(heads) < maxHeads:
				heads = append(heads, k)
			default:
				f.over++
			}
		} else if panicregion.IsList(page) {
			f.list(uint64(at), page)
		}
	}
	found := &Found{Flaws: f.flaws()}
	for _, k := range heads {
		load := func(at uint64) ([]byte, error) { return file[at : at+pageSize], nil }
		r := f.region(k, load)
		found.Regions = append(found.Regions, r)
	}
	if len(heads) == 0 {
		return found, fmt.Errorf("frames file: %w", panicregion.ErrNoHead)
	}
	found.judge(mem.Info())
	return found, nil
}

// regions makes regions of what was found: one for each list, and one for each head without a list.
func (f *finder) regions() (out []*Region) {
	met := map[uint64]bool{}
	load := func(at uint64) ([]byte, error) { return f.page, f.mem.ReadPhys(f.page, at) }
	for _, k := range f.keys() {
		r := f.region(k, load)
		met[r.Phys] = true
		out = append(out, r)
	}
	for _, pa := range f.heads {
		if met[pa] {
			continue
		}
		if r := f.alone(pa, out); r != nil {
			out = append(out, r)
		}
	}
	return out
}

// keys gives the regions that have lists, those with short ones first: endless ones leave them room.
func (f *finder) keys() []key {
	return slices.SortedFunc(maps.Keys(f.lists), func(a, b key) int {
		return cmp.Or(cmp.Compare(len(f.lists[a]), len(f.lists[b])), bytes.Compare(a.boot[:], b.boot[:]), cmp.Compare(a.region, b.region))
	})
}

// alone is a head to which no list leads. A copy of a head that is elsewhere (a frames file in the page cache, what
// its writer had in its own memory) is not worth a word.
func (f *finder) alone(pa uint64, others []*Region) *Region {
	if f.mem.ReadPhys(f.page, pa) != nil {
		return nil
	}
	r := &Region{Phys: pa}
	r.readHead(f.page)
	boot, region := panicregion.Claims(f.page)
	if slices.ContainsFunc(others, func(o *Region) bool { return o.Static != nil && o.Static.BootID == boot && o.Static.Region == region }) {
		return nil
	}
	if r.Static != nil {
		r.Err = fmt.Errorf("%w: its frame list is not in the dump", panicregion.ErrDamaged)
	}
	return r
}

// region reads a region by its list.
func (f *finder) region(k key, load func(at uint64) ([]byte, error)) *Region {
	r := new(Region)
	runs, flaws, err := f.assemble(k, load)
	r.Flaws = flaws
	if err == nil {
		err = r.place(f.mem, runs)
	}
	if len(runs) > 0 {
		r.Phys = runs[0].Phys
	}
	head := make([]byte, pageSize)
	if err == nil {
		_, err = r.ReadAt(head, 0)
	}
	if err != nil {
		r.Err = err
		r.Static = &panicregion.Static{BootID: k.boot, Region: k.region}
		return r
	}
	r.readHead(head)
	switch {
	case r.Static == nil && r.lost.n+r.gone.n > 0:
		r.Err = fmt.Errorf("%w: its head, at %#x, is not in the dump", panicregion.ErrDamaged, r.Phys)
	case r.Static == nil:
		r.Err = fmt.Errorf("head at %#x: %w", r.Phys, r.Err)
	case key{r.Static.BootID, r.Static.Region} != k:
		r.Err = fmt.Errorf("%w: the head at %#x, where the frame list has it, is of another region", panicregion.ErrDamaged, r.Phys)
	case r.Static.Pages > r.pages():
		r.Err = fmt.Errorf("%w: %d pages, the frame list has %d", panicregion.ErrDamaged, r.Static.Pages, r.pages())
	}
	if r.Static == nil {
		r.Static = &panicregion.Static{BootID: k.boot, Region: k.region}
	}
	return r
}

// assemble joins the runs of a list. Of a page that was found more than once (a frames file in the
// page cache is a copy of the list) all are alike, as a rule; where they are not, the list is refused.
func (f *finder) assemble(k key, load func(at uint64) ([]byte, error)) (runs []panicregion.Run, flaws []string, err error) {
	pages := f.lists[k]
	slices.SortStableFunc(pages, func(a, b listAt) int { return cmp.Compare(a.index, b.index) })
	want, sum := uint32(0), uint32(0)
	page := uint64(0)
	for _, at := range pages {
		b, err := load(at.phys)
		if err != nil {
			return nil, flaws, err
		}
		l, err := panicregion.ReadList(b)
		if err != nil {
			return nil, flaws, err
		}
		if at.index < want {
			if at.index == want-1 && panicregion.Sum(b) != sum {
				return nil, flaws, fmt.Errorf("%w: frame list: page %d is there in two forms", panicregion.ErrDamaged, at.index)
			}
			continue
		}
		if f.runs+len(runs)+len(l.Runs) > maxRuns {
			return nil, flaws, fmt.Errorf("frame list: more than %d runs of frames, those of other regions with them, are not read", maxRuns)
		}
		if at.index != want || len(l.Runs) > 0 && l.Page != page {
			return nil, flaws, fmt.Errorf("%w: frame list: page %d of %d is missing, or does not fit", panicregion.ErrDamaged, want, at.lists)
		}
		want, sum = want+1, panicregion.Sum(b)
		for _, run := range l.Runs {
			page += run.Count
		}
		runs = append(runs, l.Runs...)
	}
	if len(pages) == 0 || want != pages[0].lists {
		return nil, flaws, fmt.Errorf("%w: frame list: only the first %d pages of it are there", panicregion.ErrDamaged, want)
	}
	f.runs += len(runs)
	return runs, flaws, nil
}

// ErrForeign is the error of a region that another boot of the machine has left in its memory.
var ErrForeign = errors.New("of another boot")

// judge names regions of another boot, and puts the best first.
func (f *Found) judge(info map[string]string) {
	for _, r := range f.Regions {
		if why := foreignTo(info, r.Static); why != "" && r.Static != nil {
			r.Err = fmt.Errorf("%w: %s", ErrForeign, why)
		}
	}
	newest := f.newest()
	for _, r := range f.Regions {
		if newest != nil && r.Static != nil && r.Err == nil && r.Static.BootID != newest.Static.BootID {
			r.Err = fmt.Errorf("%w: a region of boot %s was written later", ErrForeign, BootName(newest.Static.BootID))
		}
	}
	slices.SortStableFunc(f.Regions, func(a, b *Region) int {
		return cmp.Or(-cmp.Compare(a.rank(), b.rank()), -cmp.Compare(a.number(), b.number()), cmp.Compare(a.Phys, b.Phys))
	})
}

// newest is the region that was written last, of those whose head is whole and that are not of another
// boot by the kernel's own words. The head of a live capture has nothing that these words could tell from another boot's: it
// counts only where no other head does.
func (f *Found) newest() (best *Region) {
	for _, r := range f.Regions {
		if r.Static == nil || r.Static.Written == 0 || errors.Is(r.Err, ErrForeign) {
			continue
		}
		panics := func(r *Region) bool { return r.Static.Kind == panicregion.KindPanic }
		if best == nil || panics(r) && !panics(best) || panics(r) == panics(best) && r.Static.Written > best.Static.Written {
			best = r
		}
	}
	return best
}

// rank: a panic's records before a SysRq's before a live capture's before what cannot be used.
func (r *Region) rank() int {
	switch {
	case r.Err != nil:
		return 0
	case r.Walk == nil:
		return 1
	case r.Walk.Hook == panicregion.HookSysrq:
		return 2
	}
	return 3
}

func (r *Region) number() uint64 {
	if r.Static == nil {
		return 0
	}
	return r.Static.Region
}

// maxTextGap is how far _stext may be from _text (arm64: 64 KiB).
const maxTextGap = 2 << 20

// foreignTo says why a region is not of the boot that the dump's vmcoreinfo is of; "": nothing
// says so.
func foreignTo(info map[string]string, s *panicregion.Static) string {
	if s == nil {
		return ""
	}
	if build, err := parseHex(info["BUILD-ID"]); err == nil && len(build) > 0 && len(s.BuildID) > 0 && !bytes.Equal(build, s.BuildID) {
		return fmt.Sprintf("its kernel has build-id %x, that of the dump %.32x", s.BuildID, build)
	}
	if at, err := strconv.ParseUint(info["SYMBOL(_stext)"], 16, 64); err == nil && s.TextAddr != 0 && at-s.TextAddr >= maxTextGap {
		return fmt.Sprintf("its kernel lay at %#x, that of the dump at %#x", s.TextAddr, at)
	}
	return ""
}
