package kcdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Inside is a stackshot in a plain buffer.
type Inside struct {
	Plain    []byte // the stackshot, as far as the buffer has it
	In       Type   // magic of the buffer around it; TypeInvalid: it is the buffer itself
	Offset   int    // in that buffer, of its begin marker, or of the envelope around it
	Unpacked bool   // it is not in the buffer as it stands there, but in an envelope
	Others   int    // buffers behind it that were not read: stackshots, and envelopes of whatever
}

// unwrapCost is what it costs to unpack even a tiny buffer, in bytes that could be unpacked instead.
const unwrapCost = 1 << 20

// FindStackshot finds the stackshot of a plain buffer: the buffer itself, or the first one that
// is nested in it, as in a crash file, with its envelope or without. What is unpacked for that counts
// as unpacked from the file of size bytes that plain is of, by the rules of Read, with its limit.
// Errors: ErrNotStackshot; those of NewReader, Items and Read, and ErrTooDeep, with what was found all the same.
func FindStackshot(plain []byte, size, limit int64) (Inside, error) {
	r, err := NewReader(plain)
	if err != nil {
		return Inside{}, err
	}
	if isStackshot(r.Magic()) {
		return Inside{Plain: plain}, nil
	}
	f := finder{left: min(limit, freeUnpack+maxRatio*size) - int64(len(plain))}
	err = f.search(r, place{}, 0)
	f.found.In = r.Magic()
	switch {
	case err != nil:
	case f.damage != nil:
		err = f.damage
	case f.found.Plain == nil:
		err = badf(0, ErrNotStackshot, "%v, and none is nested in it", r.Magic())
	}
	return f.found, err
}

func isStackshot(magic Type) bool { return magic == MagicStackshot || magic == MagicDeltaStackshot }

type finder struct {
	found  Inside
	damage error // the first thing that is nested and could not be read
	left   int64 // bytes that may still be unpacked
}

// place is where a nested buffer begins in the outermost one, or the envelope that it was unpacked from.
type place struct {
	base     int
	unpacked bool
}

// search looks through the items of a buffer.
func (f *finder) search(r *Reader, at place, depth int) error {
	for it, err := range r.Items() {
		bad, broken := errors.AsType[*FormatError](err)
		switch {
		case broken && errors.Is(bad, ErrTruncated) && len(r.data)-bad.Offset >= headerSize && header(r.data[bad.Offset:]).typ == TypeNested:
			it.Data, it.Offset = r.data[bad.Offset+headerSize:], bad.Offset // as much as there is
		case err != nil:
			return err
		case it.Type != TypeNested:
			continue
		}
		in := at
		if !at.unpacked {
			in.base += it.Offset + headerSize
		}
		f.look(it.Data, in, depth)
		if err != nil {
			return err
		}
	}
	return nil
}

// look looks at one nested buffer.
func (f *finder) look(b []byte, at place, depth int) {
	var magic Type
	if len(b) >= 4 {
		magic = Type(binary.LittleEndian.Uint32(b))
	}
	packed := magic == MagicCompressed || uint32(magic) == zstdMagic
	switch {
	case f.found.Plain != nil && (packed || isStackshot(magic)):
		f.found.Others++
		return
	case depth == MaxNested:
		f.broken(badf(0, ErrTooDeep, "a buffer in %d others", depth+1), at)
		return
	case !packed && !magic.IsMagic():
		if len(b) > 0 {
			f.broken(badf(0, ErrBadMagic, "%s", kindOf(b[:min(len(b), kindHead)])), at)
		}
		return
	}
	follows := ""
	if packed {
		if f.left -= unwrapCost; f.left <= 0 {
			f.broken(badf(0, ErrTooLarge, "nested buffers that unpack to more than the file may"), at)
			return
		}
		u, err := Read(bytes.NewReader(b), int64(len(b)), f.left)
		if err != nil {
			f.broken(err, at)
		}
		f.left -= int64(len(u.Plain))
		b, follows, at.unpacked = u.Plain, u.Follows, true
	}
	r, err := NewReader(b)
	switch {
	case err != nil:
		f.broken(err, at)
	case !isStackshot(r.Magic()):
		if err := f.search(r, at, depth+1); err != nil {
			f.broken(err, at)
		}
	case len(b) <= r.first:
		f.broken(badf(r.first, ErrTruncated, "%v without an item", r.Magic()), at)
	default:
		f.found.Plain, f.found.Offset, f.found.Unpacked = b, at.base, at.unpacked
		end, err := Check(b)
		switch {
		case follows != "" || err == nil && beginsFile(b[end:]):
			f.found.Others++
		case err == nil && !allZero(b[end:]):
			f.broken(badf(end, ErrBadSize, "%d bytes behind the end of a nested stackshot", len(b)-end), at)
		}
	}
}

// broken keeps the first error of what is nested at a place.
func (f *finder) broken(err error, at place) {
	bad, ok := errors.AsType[*FormatError](err)
	switch {
	case f.damage != nil:
		return
	case ok && at.unpacked:
		bad.What = fmt.Sprintf("of what is unpacked from offset %#x: %s", at.base, bad.What)
	case ok:
		bad.Offset += at.base
	}
	f.damage = err
}
