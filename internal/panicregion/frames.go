package panicregion

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Run is a run of frames: Count pages of the region from physical address Phys on.
type Run struct {
	Phys  uint64 // bytes
	Count uint64 // pages of PageSize bytes
}

// listHead begins a list page.
type listHead struct {
	Magic        uint64
	BootID       [16]byte
	Region       uint64
	Index, Lists uint32 // this page's place in the list, and how many there are
	Runs, Sum    uint32 // in this page; CRC-32C of the page with Sum 0
	Page         uint64 // of the region, with which the first run begins
	Reserved     uint64
}

var listHeadBytes = binary.Size(listHead{})

// RunsPerPage is how many runs a list page holds.
var RunsPerPage = (PageSize - listHeadBytes) / binary.Size(Run{})

// ListPages is how many list pages a region of so many pages may need: one run for each page, the
// list's own pages with them.
func ListPages(pages int) int {
	n := 0
	for {
		need := (pages + n + RunsPerPage - 1) / RunsPerPage
		if need <= n {
			return n
		}
		n = need
	}
}

// Runs joins frames, one for each page of PageSize bytes, into runs.
func Runs(phys []uint64) (out []Run) {
	for _, at := range phys {
		if n := len(out); n > 0 && out[n-1].Phys+out[n-1].Count*PageSize == at {
			out[n-1].Count++
			continue
		}
		out = append(out, Run{at, 1})
	}
	return out
}

// PutList writes the list into the pages for it: s.ListPages of them. Pages that no run needs
// are written too, empty, so that nothing old stands there.
func PutList(pages []byte, s *Static, runs []Run) error {
	if n := (len(runs) + RunsPerPage - 1) / RunsPerPage; n > int(s.ListPages) || len(pages) < int(s.ListPages)*PageSize {
		return fmt.Errorf("panic region: %d runs need %d list pages, there are %d", len(runs), n, s.ListPages)
	}
	page := uint64(0)
	for i := range int(s.ListPages) {
		mine := runs[:min(len(runs), RunsPerPage)]
		runs = runs[len(mine):]
		h := listHead{Magic: ListMagic, BootID: s.BootID, Region: s.Region, Index: uint32(i), Lists: s.ListPages, Runs: uint32(len(mine)), Page: page}
		to := pages[i*PageSize : (i+1)*PageSize]
		clear(to)
		// In place: a copy without a sum, left at the start of a page of ours, would be found as a torn one.
		n, err := binary.Encode(to, binary.LittleEndian, &h)
		if err == nil {
			_, err = binary.Encode(to[n:], binary.LittleEndian, mine)
		}
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(to[44:], Sum(to))
		for _, r := range mine {
			page += r.Count
		}
	}
	return nil
}

// List is one page of the list, as it was found.
type List struct {
	BootID       [16]byte
	Region       uint64
	Index, Lists uint32
	Page         uint64 // of the region, with which the first run begins
	Runs         []Run
}

// IsList reports whether a page may be of a list.
func IsList(page []byte) bool {
	return len(page) >= 8 && binary.LittleEndian.Uint64(page) == ListMagic
}

// ReadList reads a list page. An error is of kind ErrDamaged.
func ReadList(page []byte) (*List, error) {
	if len(page) < PageSize {
		return nil, fmt.Errorf("%w: list page of %d bytes", ErrDamaged, len(page))
	}
	page = page[:PageSize]
	var h listHead
	if err := binary.Read(bytes.NewReader(page), binary.LittleEndian, &h); err != nil {
		return nil, err
	}
	sum := bytes.Clone(page)
	binary.LittleEndian.PutUint32(sum[44:], 0)
	if Sum(sum) != h.Sum || h.Runs > uint32(RunsPerPage) || h.Index >= h.Lists {
		return nil, fmt.Errorf("%w: list page %d of %d, %d runs, checksum %#x, computed %#x", ErrDamaged, h.Index, h.Lists, h.Runs, h.Sum, Sum(sum))
	}
	l := &List{BootID: h.BootID, Region: h.Region, Index: h.Index, Lists: h.Lists, Page: h.Page, Runs: make([]Run, h.Runs)}
	return l, binary.Read(bytes.NewReader(page[listHeadBytes:]), binary.LittleEndian, l.Runs)
}
