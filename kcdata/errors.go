package kcdata

import (
	"errors"
	"fmt"
)

// The reasons why a reader refuses bytes. A *FormatError wraps one of them.
var (
	ErrTruncated     = errors.New("truncated")
	ErrBadMagic      = errors.New("not a kcdata buffer")
	ErrBadSize       = errors.New("impossible size")
	ErrBadArray      = errors.New("impossible array")
	ErrBadContainer  = errors.New("containers do not nest")
	ErrBadDefinition = errors.New("bad type definition")
	ErrTooDeep       = errors.New("nested too deep")
	ErrTooLarge      = errors.New("larger than the limit")
	ErrBadStream     = errors.New("compressed data is corrupt")
	ErrCompression   = errors.New("unknown compression")
	ErrNotStackshot  = errors.New("not a stackshot")
)

// The reasons why a writer does not write an item.
var (
	ErrNoSpace      = errors.New("kcdata: item does not fit")
	ErrBadName      = errors.New("kcdata: a name has 1 to 31 bytes and no NUL")
	ErrNotFixed     = errors.New("kcdata: not a struct of fixed-size fields")
	ErrReserved     = errors.New("kcdata: type has its own writer method")
	ErrSizeMismatch = errors.New("kcdata: size does not match the type")
	ErrNotDefinable = errors.New("kcdata: type has no fixed fields to define")
)

// The reasons why an editor does not make an edit.
var (
	ErrNotRead       = errors.New("kcdata: not read to its end")
	ErrWrongPosition = errors.New("kcdata: not a position of this editor")
	ErrOverlap       = errors.New("kcdata: an item is replaced or removed twice")
	ErrContainerMark = errors.New("kcdata: a container's begin or end is not replaced or removed")
)

// FormatError says where bytes stop being KCData, and why.
type FormatError struct {
	Offset int    // of the item's header in the plain buffer; of Read: from where the envelope begins
	What   string // what the reader found there
	Err    error  // one of the sentinels above
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("kcdata: offset %#x: %s: %v", e.Offset, e.What, e.Err)
}

// Unwrap returns the sentinel.
func (e *FormatError) Unwrap() error { return e.Err }

func badf(off int, err error, format string, args ...any) error {
	return &FormatError{Offset: off, What: fmt.Sprintf(format, args...), Err: err}
}
