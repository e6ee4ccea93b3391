package bumpalloc

import (
	"errors"
	"fmt"
)

// The kinds of error. Alloc and Free run while the machine stands still, where
// nothing may allocate, so what they return is made in New: test with
// errors.Is, print with Error when the machine runs again.
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

// Error says which cluster's memory an operation failed on. It matches its
// Kind under errors.Is. The text is composed from the control words when it is
// asked for: under concurrent use the size named is that of the cluster's last
// refused request.
type Error struct {
	Cluster int   // whose arena or freelist
	Kind    error // one of the sentinels above
	words   *arena
}

func (e *Error) Unwrap() error { return e.Kind }

func (e *Error) Error() string {
	switch e.Kind {
	case ErrNoSpace:
		return fmt.Sprintf("bumpalloc: cluster %d: %v for %d bytes", e.Cluster, e.Kind, e.words.last.Load())
	case ErrBusy:
		return fmt.Sprintf("bumpalloc: cluster %d: %v, lock word %d (0 free, else 1 + cluster of the holder)", e.Cluster, e.Kind, e.words.lock.Load())
	case ErrCorrupt:
		f := e.words.fault.Load()
		return fmt.Sprintf("bumpalloc: cluster %d: %v: %v 0x%x", e.Cluster, e.Kind, reason(f>>32), uint32(f))
	}
	return fmt.Sprintf("bumpalloc: cluster %d: %v", e.Cluster, e.Kind)
}

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

// errs are one cluster's ready-made errors.
type errs struct{ noSpace, busy, corrupt, size, block, double *Error }

func newErrs(cluster int, words *arena) errs {
	mk := func(kind error) *Error { return &Error{Cluster: cluster, Kind: kind, words: words} }
	return errs{mk(ErrNoSpace), mk(ErrBusy), mk(ErrCorrupt), mk(ErrSize), mk(ErrBlock), mk(ErrDoubleFree)}
}
