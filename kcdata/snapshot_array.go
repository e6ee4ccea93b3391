package kcdata

import (
	"encoding/binary"
	"reflect"
	"slices"
	"unsafe"
)

// array appends an array's elements to the slice of records that dst points to.
func (p *snapshotParser) array(it Item, dst any) {
	elem, size, count := it.Elem()
	if least := leastElement(elem); count > 0 && size < least {
		p.problem("array of %#x in %s: elements of %d bytes; the smallest version has %d", uint32(elem), p.where(), size, least)
		return
	}
	list := reflect.ValueOf(dst).Elem()
	had, limit := list.Len(), limitOf(elem)
	if limit.most > 0 {
		count = p.keep(count, limit.most-had, limit.most, elem, "elements")
	}
	if !p.take(limit.cost*int64(count), "array of %#x, %d elements,", uint32(elem), count) {
		return
	}
	record, err := planOf(list.Type().Elem())
	if err != nil {
		panic(err) // a fault of this package
	}
	list.Grow(count)
	list.SetLen(had + count)
	for i := range count {
		record.decode(it.Data[i*size:(i+1)*size], list.Index(had+i))
	}
}

// keep returns how many of count elements there is room for, of most in all.
func (p *snapshotParser) keep(count, room, most int, elem Type, what string) int {
	if room = max(room, 0); count > room {
		p.problem("array of %#x in %s: %d %s more than the %d that are kept", uint32(elem), p.where(), count-room, what, most)
		return room
	}
	return count
}

func arrayElem(it Item) Type {
	t, _, _ := it.Elem()
	return t
}

// maxStack is how many frames of one stack are kept. Our own stacks have at most 1,000. A
// frame may have a name of 4 KiB, and the reports repeat it.
const maxStack = 4096

// addresses appends an array of u64 to dst, or the addresses of the frames of a stack. An address that is
// not in seen costs placeCost and is noted there. With a nil seen none costs that.
func (p *snapshotParser) addresses(it Item, dst *[]uint64, seen map[uint64]struct{}, placeCost int64) {
	elem, size, count := it.Elem()
	whole, isShort := 8, false // bytes of an element; its address is a u32
	switch elem {
	case TypeKernStackFrame64, TypeUserStackFrame64:
		whole = 16
	case TypeKernStackFrame, TypeUserStackFrame:
		isShort = true
	case TypeKernStackLR, TypeUserStackLR:
		whole, isShort = 4, true
	}
	if count > 0 && size != whole {
		p.problem("array of %#x in %s: elements of %d bytes are not addresses", uint32(elem), p.where(), size)
		return
	}
	at := func(i int) uint64 {
		if isShort {
			return uint64(binary.LittleEndian.Uint32(it.Data[whole*i:]))
		}
		return binary.LittleEndian.Uint64(it.Data[whole*i:])
	}
	count = p.keep(count, maxStack-len(*dst), maxStack, elem, "addresses")
	cost := frameCost * int64(count)
	for i := 0; seen != nil && i < count; i++ {
		if _, known := seen[at(i)]; !known {
			seen[at(i)] = struct{}{}
			cost += placeCost
		}
	}
	if !p.take(cost, "array of %#x, %d addresses,", uint32(elem), count) {
		return
	}
	*dst = slices.Grow(*dst, count)
	for i := range count {
		*dst = append(*dst, at(i))
	}
}

// leastElement is the size in bytes of the smallest version that elem ever had. An array of
// smaller elements is not of this type, and would stand for many records in few bytes.
func leastElement(elem Type) int {
	if s, ok := Lookup(elem); ok && len(s.Sizes) > 0 {
		return s.Sizes[0]
	}
	return 1
}

// Elements decodes an array of structs or integers as ParseSnapshot does. It is nil if the
// elements are smaller than the smallest version of their type. It ends before the first
// element that cannot be decoded.
func Elements[T any](it Item) []T {
	elem, size, count := it.Elem()
	if size < leastElement(elem) {
		return nil
	}
	out := make([]T, count)
	if l, err := planOf(reflect.TypeFor[T]()); err == nil && l.flat && l.size == size {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(out))), len(it.Data)), it.Data)
		return out
	}
	for i := range out {
		if Unmarshal(it.Data[i*size:(i+1)*size], &out[i]) != nil {
			return out[:i]
		}
	}
	return out
}
