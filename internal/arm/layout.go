package arm

import (
	"stackshot/internal/panicregion"
)

// layout is where everything lies in the region: the head, the list of frames, two rooms for
// the description, the records. All sizes are whole pages of 4 KiB.
type layout struct {
	lists   int // pages of the list
	rooms   [2]int
	room    int // bytes of each
	at      int // where the records begin
	records int
}

// A description grows with the modules that come: room for that.
const (
	moreDescription = 5 // a fifth
	leastMore       = 64 << 10
)

// plan lays out a region for a packed description of so many bytes and so many bytes of records.
func plan(description, records int) layout {
	const page = panicregion.PageSize
	l := layout{records: records}
	l.room = (description + max(description/moreDescription, leastMore) + page - 1) &^ (page - 1)
	l.lists = panicregion.ListPages(1 + 2*l.room/page + records/page)
	l.rooms[0] = (1 + l.lists) * page
	l.rooms[1] = l.rooms[0] + l.room
	l.at = l.rooms[1] + l.room
	return l
}

func (l *layout) bytes() int { return l.at + l.records }

func (l *layout) pages() int { return l.bytes() / panicregion.PageSize }
