package bumpalloc

import (
	"errors"
	"fmt"
)

// AllocAtLeast and Free run while the machine stands still, where nothing may
// allocate, so they return these errors as they are. Allocator.Err has the details of
// a fault.
var (
	ErrNoSpace    = errors.New("no space")           // neither arena nor freelist could serve
	ErrBusy       = errors.New("spin bound reached") // freelist lock held, or bump word contended; the request may be repeated
	ErrCorrupt    = errors.New("control words or freelist are corrupt")
	ErrSize       = errors.New("size out of range")
	ErrCluster    = errors.New("cluster out of range")
	ErrBlock      = errors.New("block does not lie in allocated memory")
	ErrDoubleFree = errors.New("block is already on a freelist")
	ErrMemory     = errors.New("memory unsuitable") // New: too small, too large or misaligned
)

// reason is why a cluster was taken out of use, with the offending word's name.
type reason uint32

const (
	sound       reason = iota
	badUsed            // bump word past the end or not aligned
	badLink            // link that names no place for an entry
	badSeal            // place without an entry's seal
	badLength          // entry length that leaves its arena
	badCycle           // link seen before
	badCount           // more or fewer entries than were put in
	badListed          // bytes on the list fewer than the entry
	reasonCount        // one past the last
)

var reasonText = [reasonCount]string{
	sound:     "sound",
	badUsed:   "bump word",
	badLink:   "freelist link out of range",
	badSeal:   "freelist link to a place that holds no entry",
	badLength: "freelist entry of impossible length",
	badCycle:  "freelist cycle through link",
	badCount:  "freelist entries do not add up, counter",
	badListed: "freelist bytes do not add up, entry of length",
}

func (r reason) String() string {
	if r >= reasonCount {
		return fmt.Sprintf("reason %d", uint32(r))
	}
	return reasonText[r]
}
