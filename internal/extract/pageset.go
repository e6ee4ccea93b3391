package extract

import (
	"slices"
	"sort"
)

// pageSet is a set of pages, as ranges: a dump that was cut lacks many pages in a row.
type pageSet struct {
	ranges []pageRange // ascending, not next to each other
	n      int         // pages
}

type pageRange struct{ first, last uint64 }

// maxRanges bounds a set. When it is full, a page joins the range before it, with all pages between: a page too many
// counts as lost rather than one too few.
const maxRanges = 1 << 16

// at is the index of the first range that does not end before a page.
func (s *pageSet) at(page uint64) int {
	return sort.Search(len(s.ranges), func(i int) bool { return s.ranges[i].last >= page })
}

func (s *pageSet) add(page uint64) {
	i := s.at(page)
	if i < len(s.ranges) && s.ranges[i].first <= page {
		return
	}
	s.n++
	before := i > 0 && s.ranges[i-1].last+1 == page
	after := i < len(s.ranges) && page+1 == s.ranges[i].first
	switch {
	case before && after:
		s.ranges[i-1].last = s.ranges[i].last
		s.ranges = slices.Delete(s.ranges, i, i+1)
	case before:
		s.ranges[i-1].last = page
	case after:
		s.ranges[i].first = page
	case len(s.ranges) < maxRanges:
		s.ranges = slices.Insert(s.ranges, i, pageRange{page, page})
	case i > 0:
		s.ranges[i-1].last = page
	default:
		s.ranges[0].first = page
	}
}

// meets reports whether one of the pages from first to last is in the set.
func (s *pageSet) meets(first, last uint64) bool {
	i := s.at(first)
	return i < len(s.ranges) && s.ranges[i].first <= last
}
